/* shed.h - decides which connections are closed when a worker runs out of connections or memory. */
#ifndef GATLING_LOAD_SHED_H
#define GATLING_LOAD_SHED_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/load/heavy.h"

enum {
	SHED_FROM = 90,         /* per cent of its connections at which a worker begins to close some, */
	SHED_LAST = 95,         /* and above which an address that has all of them gives way, too, down to SHED_FROM, */
	SHED_LAST_LEAST = 100,  /* if there may be so many; */
	SHED_ALONE_MS = 1000,   /* this ends when there was no walk for so long */
	SHED_HEAD_MS = 3000,    /* how long a head or handshake may take, */
	SHED_HANDSHAKE = 49152, /* and the bytes of memory that a handshake may take so long, */
	SHED_IDLE_MS = 1000,    /* and a connection may be idle, before it is closed to make room */
	SHED_BATCH = 64,        /* connections closed at a time */
	SHED_CANDIDATES = 512,  /* connections that one walk over all of them remembers */
	SHED_WALK_MS = 100      /* the time between two walks */
};

/* Of what memory there is a limit. */
enum budget { BUDGET_OF_CLIENTS, BUDGET_OF_QUIC, BUDGET_OF_ALL, BUDGETS };

/* The candidates of the last walk; all zero at first. */
struct shed {
	struct shed_candidate {
		int64_t rank, since_ms;       /* the highest rank is closed first */
		int kind, number;             /* as in struct walked */
	} candidate[2 * SHED_CANDIDATES]; /* the second half is used during a walk */
	unsigned first, count;            /* the candidates from first to count have not been tried yet */
	bool descriptors;                 /* they are those that have one */
	bool alone;                       /* an address that has all was heavy in the last walk */
	enum budget budget;               /* of which they have most, if this is about memory, */
	bool spares;                      /* without that of young handshakes */
	int64_t walk_ms;                  /* when the next walk may be */
	unsigned long heads, idle, refused;
	struct heavy_addresses heavy; /* as of the last walk */
};

/* Closes up to `wanted` connections (SHED_BATCH at most), or descriptors: only of those that have one. First those with
 * heads and handshakes older than SHED_HEAD_MS, then those that have been idle for more than SHED_IDLE_MS, in both
 * cases the oldest first. Those of heavy addresses (heavy.h) come before others of their kind, whatever their age, the
 * heaviest first. Returns how many it has closed, and logs that, at most every NOTICE_AGAIN_S. */
unsigned shed_connections(struct conn_context *context, unsigned wanted, bool descriptors);

/* Called for a new client when connections run short. Returns whether it is to be refused, since its address already
 * has more than its share of them. */
bool shed_refuses(struct conn_context *context, const struct peer *peer);

/* Logs that a worker is full and can close no connection, at most every NOTICE_AGAIN_S. */
void shed_say_full(struct conn_context *context);

/* Called after each connection has had its turn, since many may have come at once. If more memory is taken than is
 * allowed, closes connections until there is room again: first those of addresses with more than an eighth of it, and
 * then those that take most, of two that take as much the older one; those whose handshake is not older than
 * SHED_HEAD_MS only as far as they take more than SHED_HANDSHAKE, unless such take more than half of it; of QUIC, if it
 * has too much, before these those that are idle longest. shed_over_quic_budget() does the same after those of QUIC. */
void shed_over_budget(struct conn_context *context);
void shed_over_quic_budget(struct conn_context *context);

#endif
