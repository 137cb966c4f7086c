/* listen.h - the listening sockets. */
#ifndef GATLING_LISTEN_H
#define GATLING_LISTEN_H

#include "gatling/options.h"
#include "gatling/worker.h"

/* Opens a socket for each address of the options, and with https one more for TLS, for each worker (in its listener
 * array). All descriptors differ, even if workers share a socket. Returns 0; or prints an error and returns -1 if an
 * address cannot be bound. If HTTPS is optional (see options.h) and fails, prints a line and continues without it. */
int listen_open(const struct options *options, bool https, struct worker *workers);

/* Returns the addresses of a worker as text ("http://127.0.0.1:8000/ unix:/run/gatling"), malloc'd. NULL: ENOMEM. */
char *listen_describe(const struct options *options, const struct worker *worker);

#endif
