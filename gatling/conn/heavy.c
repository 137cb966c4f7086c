/* heavy.c - see heavy.h. */
#include "gatling/conn/heavy.h"

#include "gatling/conn/conn.h"

/* Returns its place; h->count: it has none. */
static unsigned find(const struct heavy_addresses *h, uint64_t network) {
	unsigned i = 0;
	while (i < h->count && h->address[i].network != network) i++;
	return i;
}

/* Misra and Gries, "Finding repeated elements" (1982): after all connections have been counted like this, each address
 * with more than one in HEAVY_PART + 1 of them is among those left. */
static void count(struct heavy_addresses *h, uint64_t network) {
	unsigned found = find(h, network);
	if (found < h->count) {
		h->address[found].connections++;
	} else if (h->count < HEAVY_PART) {
		h->address[h->count++] = (struct heavy_address){.network = network, .connections = 1};
	} else {
		for (unsigned i = h->count; i-- > 0;)
			if (!--h->address[i].connections) h->address[i] = h->address[--h->count];
	}
}

void heavy_find(struct heavy_addresses *h, const struct conn_context *w) {
	h->count = 0;
	for (int fd = 0; fd < io_fd_bound(w->loop); fd++) {
		const struct conn *c = conn_of(w, fd);
		if (c && !peer_is_local(conn_peer(c))) count(h, address_network(conn_peer(c)));
	}
	for (unsigned i = 0; i < h->count; i++) h->address[i].connections = 0;
	for (int fd = 0; fd < io_fd_bound(w->loop); fd++) {
		const struct conn *c = conn_of(w, fd);
		unsigned found = c ? find(h, address_network(conn_peer(c))) : h->count;
		if (found < h->count) h->address[found].connections++;
	}
	for (unsigned i = h->count; i-- > 0;) {
		unsigned n = h->address[i].connections;
		if (n <= w->connections / HEAVY_PART || n == w->connections) h->address[i] = h->address[--h->count];
	}
}

unsigned heavy_connections(const struct heavy_addresses *h, const struct peer *peer) {
	unsigned found = h->count ? find(h, address_network(peer)) : 0;
	return found < h->count ? h->address[found].connections : 0;
}
