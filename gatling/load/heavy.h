/* heavy.h - finds the client addresses that have most of something, in little memory: Misra and Gries, "Finding
 * repeated elements" (1982). When there is not enough for all, these are the first to give way. A fixed limit per
 * address would also hit clients that share one (NAT) while there is room. */
#ifndef GATLING_LOAD_HEAVY_H
#define GATLING_LOAD_HEAVY_H

#include "gatling/load/walk.h"

enum {
	HEAVY_COUNTERS = 32, /* an address with more than 1/33 of everything that is added is found */
	HEAVY_PART = 8       /* heavy_find() finds addresses with more than this part (1/8) of everything */
};

struct heavy_addresses {
	unsigned count;
	struct heavy_address {
		uint64_t network; /* peer_network() */
		uint64_t weight;  /* at most what the address has, and at least that minus 1/33 of everything */
	} address[HEAVY_COUNTERS];
};

void heavy_add(struct heavy_addresses *heavy, uint64_t network, uint64_t weight);

/* Finds the addresses with more than an eighth of what a worker's connections have; one that has all of it only if
 * `alone` says so. Their weights become what they have. Walks over all connections twice. */
void heavy_find(struct heavy_addresses *heavy, const struct conn_context *context, walk_fn *weight, bool alone);

/* Returns the weight of a client's address, or 0 if it has none. */
uint64_t heavy_weight(const struct heavy_addresses *heavy, const struct peer *peer);

#endif
