/* listen.h - the listening sockets. */
#ifndef GATLING_LISTEN_H
#define GATLING_LISTEN_H

#include "gatling/options/options.h"
#include "gatling/sockets.h"
#include "gatling/worker.h"

/* Gives each worker a socket for each address of the options, and with https one more for TLS (in its listener array).
 * Takes those that are there, opens the others, and closes those that are at no address; but those of a service manager
 * are all served, and without addresses in the options they alone. All descriptors of workers differ, even if they
 * share a socket. Returns 0; or prints an error and returns -1 if an address cannot be bound. If HTTPS is optional (see
 * options.h) and fails, prints a line and continues without it. */
int listen_open(const struct options *options, bool https, struct sockets *sockets, struct worker *workers);

/* Opens the socket of the status page, unless it is there. Returns 0, also if none is wanted, or -1 after printing an
 * error. */
int listen_status(const struct options *options, struct sockets *sockets);

/* Makes the sockets ready to be accepted from. To be called when no other process needs them any more; before that they
 * are as they were, and further ones beside them do not listen. */
void listen_start(const struct options *options, const struct sockets *sockets);

/* Returns the addresses as text ("http://127.0.0.1:8000/ unix:/run/gatling"), malloc'd. NULL: ENOMEM. */
char *listen_describe(const struct sockets *sockets);

#endif
