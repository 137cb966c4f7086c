/* listen.h - the listening sockets. */
#ifndef GATLING_LISTEN_H
#define GATLING_LISTEN_H

#include "gatling/options/options.h"
#include "gatling/keeper/datagram_sockets.h"
#include "gatling/keeper/sockets.h"
#include "gatling/worker.h"

/* Gives each worker, in its listener array, a socket for each address of the options, and with https another one for
 * TLS. Uses the sockets that are open, opens the missing ones, and closes those at other addresses. But the sockets of
 * a service manager are all served, and only they if the options name no address. Each worker has descriptors of its
 * own, also for a shared socket. Returns 0, or -1 after printing an error if an address cannot be bound. If HTTPS is
 * optional (see options.h) and fails, prints a line and continues without it. */
int listen_open(const struct options *options, bool https, struct sockets *sockets, struct worker *workers);

/* Gives each listener a second descriptor, for listen(2), with a number above the limit of descriptors, which is
 * lowered for that. So none that is opened later has such a number. *from becomes the first of *count numbers; *count
 * is a power of two, which divides *from. Returns 0, or -1 after printing an error. */
int listen_reserve(struct worker *workers, unsigned count_of_workers, unsigned *from, unsigned *count);

/* Opens the socket of the status page, unless it is open. Returns 0, also if no page is wanted, or -1 after printing an
 * error. */
int listen_status(const struct options *options, struct sockets *sockets);

/* Makes the sockets listen, and sets their options and flags. Call it when no other process needs them. Before that,
 * inherited sockets are unchanged, and those opened beside them do not listen. */
void listen_start(const struct options *options, const struct sockets *sockets);

/* Finds or opens sockets for datagrams at the addresses of HTTPS, and the channels of the workers; closes those at
 * other addresses. HTTPS goes on without HTTP/3 if that is impossible. Returns 0, or -1 after printing an error. */
int listen_datagrams(const struct options *options, const struct sockets *sockets, struct datagram_sockets *datagrams);

/* Has the system give each worker the datagrams of its connections. If that fails, workers hand them over to each
 * other. Call it when no other process receives. */
void listen_route(const struct options *options, const struct datagram_sockets *datagrams);

/* Returns the addresses as text ("http://127.0.0.1:8000/ unix:/run/gatling"), to be freed with free(), or NULL without
 * memory. */
char *listen_describe(const struct sockets *sockets);

#endif
