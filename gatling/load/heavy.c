/* heavy.c - see heavy.h. */
#include "gatling/load/heavy.h"

#include "gatling/conn/conn.h"

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

void heavy_find(struct heavy_addresses *h, const struct conn_context *w) {
	h->count = 0;
	for (int fd = 0; fd < io_fd_bound(w->loop); fd++) {
		const struct conn *c = conn_of(w, fd);
		if (c && !peer_is_unix(conn_peer(c))) heavy_add(h, peer_network(conn_peer(c)), 1);
	}
	for (unsigned i = 0; i < h->count; i++) h->address[i].weight = 0;
	for (int fd = 0; fd < io_fd_bound(w->loop); fd++) {
		const struct conn *c = conn_of(w, fd);
		unsigned found = c ? find_network(h, peer_network(conn_peer(c))) : h->count;
		if (found < h->count) h->address[found].weight++;
	}
	for (unsigned i = h->count; i-- > 0;) {
		uint64_t n = h->address[i].weight;
		if (n <= w->connections / HEAVY_PART || n == w->connections) h->address[i] = h->address[--h->count];
	}
}

uint64_t heavy_weight(const struct heavy_addresses *h, const struct peer *peer) {
	unsigned found = h->count ? find_network(h, peer_network(peer)) : 0;
	return found < h->count ? h->address[found].weight : 0;
}
