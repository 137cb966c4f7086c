/* fair.h - which addresses take more than their part of a worker's time: their connections come after all others in a
 * turn, and read less at a time, so that others do not wait for them. What an address takes is sampled, so that finding
 * out costs next to nothing. */
#ifndef GATLING_CONN_FAIR_H
#define GATLING_CONN_FAIR_H

#include "gatling/conn/conn.h"
#include "gatling/conn/heavy.h"

enum {
	/* An address with less than this part of the time hardly ever begins to wait for others; one with more than 1/16 +
	 * 1/33, see HEAVY_COUNTERS, does, until it has less than half of this part: of some that take the same, all wait or
	 * none. */
	FAIR_PART = 16,
	FAIR_SAMPLE = 61,      /* one call in so many is timed */
	FAIR_SAMPLES = 128,    /* after so many further ones, half of what was known is forgotten */
	FAIR_SAMPLES_MIN = 16, /* and before so many nothing is known */
	/* Those that wait get so long in a turn: readers, writers and new ones each. What is done in a row costs less, so
	 * it is longer after fair_waits() was asked about them alone for FAIR_ALONE_MS. */
	FAIR_TURN_NS = 200000,
	FAIR_ALONE_NS = 500000, /* readers and writers together half of ACCEPT_TURN_MS */
	FAIR_ALONE_MS = 1000
};

/* All zero at first. */
struct fair {
	struct heavy_addresses taken; /* nanoseconds */
	uint64_t all_ns;              /* taken together */
	unsigned samples, calls;
	uint64_t waits[2 * FAIR_PART]; /* the networks, see peer_network(), whose connections have to wait */
	unsigned waiting;
	int64_t others_ms; /* when a socket of a client that does not wait was ready last */
};

/* Counts the nanoseconds that a network took, and finds those that have to wait. */
void fair_count(struct fair *fair, uint64_t network, uint64_t ns);

/* Returns whether the connections of a network have to wait. */
bool fair_has(const struct fair *fair, uint64_t network);

/* Returns whether a connection of a client, whose socket is ready, has to wait for those of others. Notes the time if
 * it has not: those others are there. */
static inline bool fair_waits(struct fair *fair, const struct peer *peer, int64_t now_ms) {
	if (fair->waiting && fair_has(fair, peer_network(peer))) return true;
	fair->others_ms = now_ms;
	return false;
}

/* Returns how long those that wait are served in this turn. */
static inline int64_t fair_turn_ns(const struct fair *fair, int64_t now_ms) {
	return now_ms - fair->others_ms < FAIR_ALONE_MS ? FAIR_TURN_NS : FAIR_ALONE_NS;
}

typedef void fair_fn(struct conn_context *context, struct conn *conn); /* may free the connection */

/* Calls it, and counts the time that it takes. */
void fair_measure(struct fair *fair, fair_fn *run, struct conn_context *context, struct conn *conn);

/* Calls it, and counts its time now and then. */
static inline void fair_run(struct fair *fair, fair_fn *run, struct conn_context *context, struct conn *conn) {
	if (++fair->calls % FAIR_SAMPLE) run(context, conn);
	else fair_measure(fair, run, context, conn);
}

#endif
