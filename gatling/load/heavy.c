/* heavy.c - see heavy.h. */
#include "gatling/load/heavy.h"

/* Returns the index of a network, or h->count if it has none. */
static unsigned find_network(const struct heavy_addresses *h, uint64_t network) {
	unsigned i = 0;
	while (i < h->count && h->address[i].network != network) i++;
	return i;
}

/* Subtracts a weight from all, and removes those whose weight is then 0. */
static void take(struct heavy_addresses *h, uint64_t weight) {
	for (unsigned i = h->count; i-- > 0;) {
		h->address[i].weight -= weight;
		if (!h->address[i].weight) h->address[i] = h->address[--h->count];
	}
}

void heavy_add(struct heavy_addresses *h, uint64_t network, uint64_t weight) {
	unsigned at = find_network(h, network);
	if (at < h->count) {
		h->address[at].weight += weight;
		return;
	}
	if (h->count == HEAVY_COUNTERS) {
		uint64_t least = weight;
		for (unsigned i = 0; i < h->count; i++)
			if (h->address[i].weight < least) least = h->address[i].weight;
		take(h, least);
		weight -= least;
	}
	if (weight) h->address[h->count++] = (struct heavy_address){.network = network, .weight = weight};
}

void heavy_find(struct heavy_addresses *h, const struct conn_context *w, walk_fn *weight, bool alone) {
	uint64_t all = 0;
	h->count = 0;
	for (struct walked at = {0}; walk_on(&at, w);) {
		const struct peer *peer = at.is->peer(at.connection);
		const uint64_t n = (uint64_t)weight(w, &at);
		all += n;
		if (n && !peer_is_unix(peer)) heavy_add(h, peer_network(peer), n);
	}
	for (unsigned i = 0; i < h->count; i++) h->address[i].weight = 0;
	for (struct walked at = {0}; walk_on(&at, w);) {
		const unsigned found = find_network(h, peer_network(at.is->peer(at.connection)));
		if (found < h->count) h->address[found].weight += (uint64_t)weight(w, &at);
	}
	for (unsigned i = h->count; i-- > 0;) {
		const uint64_t n = h->address[i].weight;
		if (n <= all / HEAVY_PART || (n == all && !alone)) h->address[i] = h->address[--h->count];
	}
}

uint64_t heavy_weight(const struct heavy_addresses *h, const struct peer *peer) {
	unsigned found = h->count ? find_network(h, peer_network(peer)) : 0;
	return found < h->count ? h->address[found].weight : 0;
}
