/* fair.h - finds the addresses that take more than their share of a worker's time. In each turn their connections come
 * after all others, and read less at a time, so that others do not wait for them. The times are sampled, which costs
 * next to nothing. */
#ifndef GATLING_LOAD_FAIR_H
#define GATLING_LOAD_FAIR_H

#include "gatling/conn/conn.h"
#include "gatling/load/heavy.h"

enum {
	/* An address with less than 1/16 of the time hardly ever has to wait for others. One with more than 1/16 + 1/33
	 * (see HEAVY_COUNTERS) has to, until it takes less than 1/32: of several that take the same, all wait or none. */
	FAIR_PART = 16,
	FAIR_SAMPLE = 61,      /* one call in so many is timed */
	FAIR_SAMPLES = 128,    /* after so many further samples, everything is halved */
	FAIR_SAMPLES_MIN = 16, /* with fewer samples, no address has to wait */
	/* How long those that wait are served in a turn: readers, writers and new ones each. Work that is done in a row
	 * costs less, so it is longer if no others were ready for FAIR_ALONE_MS. */
	FAIR_TURN_NS = 200000,
	FAIR_ALONE_NS = 500000, /* readers and writers together half of ACCEPT_TURN_MS */
	FAIR_ALONE_MS = 1000
};

/* All zero at first. */
struct fair {
	struct heavy_addresses taken; /* nanoseconds */
	uint64_t all_ns;              /* of all addresses together */
	unsigned samples, calls;
	uint64_t waits[2 * FAIR_PART]; /* the networks, see peer_network(), whose connections have to wait */
	unsigned waiting;
	int64_t others_ms; /* while there are any: when a socket of a client that does not have to wait was last ready */
};

/* Counts the nanoseconds that a network took, and finds those that have to wait. */
void fair_count(struct fair *fair, uint64_t network, uint64_t ns);

/* Returns whether the connections of a network have to wait. */
bool fair_has(const struct fair *fair, uint64_t network);

/* Returns whether a connection of a client, whose socket is ready, has to wait for those of others. Otherwise notes the
 * time, for fair_turn_ns(). */
static inline bool fair_waits(struct fair *fair, const struct peer *peer, int64_t now_ms) {
	if (!fair->waiting) return false;
	if (fair_has(fair, peer_network(peer))) return true;
	fair->others_ms = now_ms;
	return false;
}

/* Returns whether no others were ready for FAIR_ALONE_MS. */
static inline bool fair_is_alone(const struct fair *fair, int64_t now_ms) {
	return now_ms - fair->others_ms >= FAIR_ALONE_MS;
}

/* Returns how long the connections that wait are served in this turn. */
static inline int64_t fair_turn_ns(const struct fair *fair, int64_t now_ms) {
	return fair_is_alone(fair, now_ms) ? FAIR_ALONE_NS : FAIR_TURN_NS;
}

typedef void fair_fn(struct conn_context *context, struct conn *conn); /* may free the connection */

/* Calls run(), and counts the time that it takes. */
void fair_measure(struct fair *fair, fair_fn *run, struct conn_context *context, struct conn *conn);

/* Returns whether to time the next call. */
static inline bool fair_samples(struct fair *fair) { return ++fair->calls % FAIR_SAMPLE == 0; }

/* Calls run(), and counts the time of some of the calls. */
static inline void fair_run(struct fair *fair, fair_fn *run, struct conn_context *context, struct conn *conn) {
	if (fair_samples(fair)) fair_measure(fair, run, context, conn);
	else run(context, conn);
}

extern const struct conn_turns fair_turns;

#endif
