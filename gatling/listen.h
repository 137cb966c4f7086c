/* listen.h - the listening sockets. */
#ifndef GATLING_LISTEN_H
#define GATLING_LISTEN_H

#include "gatling/options.h"
#include "gatling/worker.h"

/* Opens a socket for each address asked for, and with https one more for TLS, for each of the workers (fills their
 * listener arrays). Descriptors are all different, also where workers share a socket. Prints one line and returns -1
 * when an address cannot be had; HTTPS that is only tried (see options.h) is done without, after a line. */
int listen_open(const struct options *options, bool https, struct worker *workers);

/* Writes what the first worker listens on, such as "http://127.0.0.1:8000/ unix:/run/gatling", to out. */
void listen_describe(const struct options *options, const struct worker *worker, char *out, size_t size);

#endif
