/* fair.h - which addresses take more than their part of a worker's time: their connections come after all others in a
 * turn, and read less at a time, so that nobody else waits for them. What an address takes is sampled, so that finding
 * out costs next to nothing. */
#ifndef GATLING_CONN_FAIR_H
#define GATLING_CONN_FAIR_H

#include "gatling/conn/conn.h"
#include "gatling/conn/heavy.h"

enum {
	/* An address with less than this part of the time hardly ever waits for others; one with more than 1/16 + 1/33, see
	 * HEAVY_COUNTERS, does. */
	FAIR_PART = 16,
	FAIR_SAMPLE = 61,      /* one call in so many is timed */
	FAIR_SAMPLES = 128,    /* after so many further ones, half of what was known is forgotten */
	FAIR_SAMPLES_MIN = 16, /* and before so many nothing is known */
	FAIR_TURN_NS = 200000  /* those that wait get so long in a turn: readers, writers and new ones each */
};

/* All zero at first. */
struct fair {
	struct heavy_addresses taken; /* nanoseconds */
	uint64_t all_ns;              /* taken together */
	unsigned samples, calls;
	uint64_t waits[FAIR_PART]; /* the networks, see peer_network(), whose connections have to wait */
	unsigned waiting;
};

/* Returns whether what is done for the clients of a network has to wait for that of others. */
static inline bool fair_waits(const struct fair *fair, uint64_t network) {
	for (unsigned i = 0; i < fair->waiting; i++)
		if (fair->waits[i] == network) return true;
	return false;
}

/* To be called before something is done. Returns when it begins, if it is to be counted; 0: it is not. */
static inline int64_t fair_begin(struct fair *fair) { return ++fair->calls % FAIR_SAMPLE ? 0 : io_read_clock(); }

/* Counts it, for the network that it was done for. */
void fair_end(struct fair *fair, uint64_t network, int64_t begun_ns);

/* Has a connection go on, which may free it, and counts that. */
static inline void fair_run(struct fair *fair, void (*run)(struct conn_context *context, struct conn *conn),
							struct conn_context *context, struct conn *conn) {
	const int64_t begun_ns = fair_begin(fair);
	if (begun_ns) context->served = peer_network(conn_peer(conn)); /* which a PROXY header changes */
	run(context, conn);
	if (begun_ns) fair_end(fair, context->served, begun_ns);
}

#endif
