/* shed.h - decides which connections are closed when a worker runs out of connections or memory. */
#ifndef GATLING_CONN_SHED_H
#define GATLING_CONN_SHED_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/conn/heavy.h"

enum {
	SHED_FROM = 90,        /* per cent of its connections at which a worker begins to close some */
	SHED_HEAD_MS = 3000,   /* a head or handshake may take so long, */
	SHED_IDLE_MS = 1000,   /* and a connection be idle for so long, before it is closed to make room */
	SHED_BATCH = 64,       /* connections closed at a time */
	SHED_CANDIDATES = 512, /* connections that one walk over all of them remembers */
	SHED_WALK_MS = 100     /* between two walks */
};

/* The candidates of the last walk; all zero at first. */
struct shed {
	struct shed_candidate {
		int64_t rank, since_ms; /* the higher rank goes first */
		int fd;
	} candidate[2 * SHED_CANDIDATES]; /* the second half is for walks */
	unsigned first, count;            /* the candidates from first to count have not been looked at yet */
	int64_t walk_ms;                  /* when the next walk may be */
	unsigned long heads, idle, refused;
	struct heavy_addresses heavy; /* as of the last walk */
};

/* Closes up to `wanted` connections (SHED_BATCH at most), in this order: heads and handshakes older than SHED_HEAD_MS,
 * the oldest first; connections idle for more than SHED_IDLE_MS, the longest first. In both, those of the heaviest
 * address come first (heavy.h), and whatever their age. Returns how many. Reports it on
 * stderr, at most every NOTICE_AGAIN_S. */
unsigned shed_connections(struct conn_context *context, unsigned wanted);

/* Called for a new client when connections run short: returns whether its address already has more than its part of
 * them, so that this one would be at the cost of other addresses. */
bool shed_refuses(struct conn_context *context, const struct peer *peer);

/* Reports on stderr that a worker is full and can close no connection; as often. */
void shed_say_full(struct conn_context *context);

/* Called after each connection has had its turn: many may have come at once. If more memory is taken than is allowed,
 * closes the connections that take most, until there is room again. */
void shed_over_budget(struct conn_context *context);

#endif
