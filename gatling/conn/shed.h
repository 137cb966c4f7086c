/* shed.h - who goes first when a worker has too little: the one place that decides. */
#ifndef GATLING_CONN_SHED_H
#define GATLING_CONN_SHED_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SHED_FROM = 90,      /* per cent of its connections at which a worker begins to part with some for those who come */
	SHED_HEAD_MS = 3000, /* a head or handshake that has taken so long */
	SHED_IDLE_MS = 1000, /* and a connection that has been idle for so long may go; never one for less */
	SHED_BATCH = 64,     /* at a time */
	SHED_CANDIDATES = 512, /* found in one walk over all of them, */
	SHED_WALK_MS = 100,    /* and the time between two walks */
	SHED_SAY_S = 60        /* between two lines on stderr, of all workers */
};

struct conn_context;

/* What a worker knows about it; all zero at first. */
struct shed {
	struct shed_candidate {
		int64_t rank, since_ms; /* the higher rank goes first */
		int fd;
	} candidate[SHED_CANDIDATES];
	unsigned first, count; /* those from first to count are still to be looked at */
	int64_t walk_ms;       /* when the next walk may be */
	unsigned long heads, idle;
};

/* Parts with up to `wanted` connections (SHED_BATCH at most), in this order: heads and handshakes older than
 * SHED_HEAD_MS, the oldest first; connections idle for more than SHED_IDLE_MS, the longest first. How many. Says on
 * stderr now and then that it had to. */
unsigned shed_connections(struct conn_context *context, unsigned wanted);

/* Says on stderr that a worker is full and nobody can go, as often. */
void shed_say_full(struct conn_context *context);

/* For when more memory is kept for clients than is allowed: closes the connections for which most is, until there is
 * room again. */
void shed_memory(struct conn_context *context);

#endif
