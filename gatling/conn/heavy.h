/* heavy.h - the client addresses that have most of something, found in little memory: Misra and Gries, "Finding
 * repeated elements" (1982). When there is too little for all, they are the first to give way. A fixed limit for each
 * address would also hit clients that share one (NAT) while there is room. */
#ifndef GATLING_CONN_HEAVY_H
#define GATLING_CONN_HEAVY_H

#include "gatling/conn/conn_context.h"

enum {
	HEAVY_COUNTERS = 32, /* an address with more than one in 33 of everything that is added is found */
	HEAVY_PART = 8       /* heavy_find(): more than this part of the connections */
};

struct heavy_addresses {
	unsigned count;
	struct heavy_address {
		uint64_t network; /* peer_network() */
		uint64_t weight;  /* at least what the address has beyond that part of everything, at most what it has */
	} address[HEAVY_COUNTERS];
};

void heavy_add(struct heavy_addresses *heavy, uint64_t network, uint64_t weight);

/* Finds the addresses with more than an eighth of a worker's connections, unless one has all of them, and how many
 * those are, in two walks over all connections. */
void heavy_find(struct heavy_addresses *heavy, const struct conn_context *context);

/* Returns the weight of a client's address; 0: it has none. */
uint64_t heavy_weight(const struct heavy_addresses *heavy, const struct peer *peer);

#endif
