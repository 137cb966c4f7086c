/* heavy.h - the client addresses with the most connections of a worker: when connections run short, they are the first
 * to give way. A fixed limit for each address would also hit those who share one (NAT) while there is room. */
#ifndef GATLING_CONN_HEAVY_H
#define GATLING_CONN_HEAVY_H

#include "gatling/conn/conn_context.h"

/* An address is heavy with more than this part of the worker's connections, unless it has all of them. */
enum { HEAVY_PART = 8 };

struct heavy_addresses {
	unsigned count;
	struct heavy_address {
		uint64_t network; /* see address_network() */
		unsigned connections;
	} address[HEAVY_PART];
};

/* Finds them, in two walks over all connections. */
void heavy_find(struct heavy_addresses *heavy, const struct conn_context *context);

/* Returns how many connections the address of a client had then, if it was heavy; otherwise 0. */
unsigned heavy_connections(const struct heavy_addresses *heavy, const struct peer *peer);

#endif
