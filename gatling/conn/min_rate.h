/* min_rate.h - closes clients that take an answer, or send a body, so slowly that they keep a connection from others:
 * slower than --min-rate, while most of the connections, or of the files that may be open, are in use. */
#ifndef GATLING_CONN_MIN_RATE_H
#define GATLING_CONN_MIN_RATE_H

enum {
	MIN_RATE = 500,             /* bytes a second, unless --min-rate says otherwise */
	MIN_RATE_FROM = 75,         /* per cent of a worker's connections in use, from which it is enforced; of files:
								   cache_lacks_files() */
	MIN_RATE_WINDOW_MS = 10000, /* over which it is measured */
	MIN_RATE_WALK_MS = 1000     /* between two walks over all connections */
};

struct conn_context;

/* Returns in how many milliseconds min_rate_enforce() is due; -1: not at all, and it is noted that there is no
 * shortage.
 */
int min_rate_due(struct conn_context *context);

/* Begins a window for each connection whose client has to take or to send content, and closes those whose window is
 * over and that were too slow in it, by the bytes that TCP has carried either way. Windows end with the shortage.
 * Nothing is measured where the system does not tell what a client has acknowledged (platform_transferred()). */
void min_rate_enforce(struct conn_context *context);

#endif
