/* min_rate.h - closes clients that take a response, or send a body, more slowly than --limit min-rate, while most of
 * the connections, or of the files that may be open, are in use. */
#ifndef GATLING_LOAD_MIN_RATE_H
#define GATLING_LOAD_MIN_RATE_H

#include <stdint.h>

enum {
	MIN_RATE = 500,             /* bytes per second; the default of --limit min-rate */
	MIN_RATE_FROM = 75,         /* per cent of a worker's connections in use, from which it is enforced; for files, see
								   cache_lacks_files() */
	MIN_RATE_WINDOW_MS = 10000, /* the time over which the rate is measured */
	MIN_RATE_WALK_MS = 1000     /* the time between two walks over all connections */
};

struct conn_context;

/* Returns in how many milliseconds min_rate_enforce() is due; or -1, and notes the time, if there is no shortage. */
int min_rate_due(struct conn_context *context, int64_t now_ms);

/* Begins a window for each connection whose client has to take or to send content. Closes those that were too slow in a
 * window that is over, by the bytes that TCP or QUIC has carried both ways. Windows end with the shortage. Nothing of
 * TCP is measured if the system does not tell what a client has acknowledged (platform_transferred()). */
void min_rate_enforce(struct conn_context *context);

#endif
