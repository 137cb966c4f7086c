/* memory.c - see endpoint.h: the memory of a connection, with that of ngtcp2. */
#include <malloc.h>
#include <stdlib.h>

#include "gatling/quic/endpoint.h"

enum { BLOCK = 16 }; /* what malloc(3) takes for a block beside it */

static void *note(size_t *sum, void *block) {
	if (block) *sum += malloc_usable_size(block) + BLOCK;
	return block;
}

static void *allocate(size_t size, void *sum) { return note(sum, malloc(size)); }

static void *allocate_zero(size_t count, size_t size, void *sum) { return note(sum, calloc(count, size)); }

static void release(void *block, void *sum) {
	if (block) *(size_t *)sum -= malloc_usable_size(block) + BLOCK;
	free(block);
}

static void *allocate_again(void *block, size_t size, void *sum) {
	const size_t before = block ? malloc_usable_size(block) + BLOCK : 0;
	void *again = realloc(block, size);
	if (!again) return NULL;
	*(size_t *)sum -= before;
	return note(sum, again);
}

ngtcp2_mem quic_memory(size_t *sum) {
	return (ngtcp2_mem){
		.user_data = sum, .malloc = allocate, .free = release, .calloc = allocate_zero, .realloc = allocate_again};
}

static struct conn_memory memory_of(const struct quic_connection *c) {
	struct conn_memory m = {0};
	if (c->ended) return m;
	m.kept = c->http3 ? http3_kept(c->http3) : 0;
	m.all =
		sizeof *c + c->library_memory + (c->ssl ? TLS_HANDSHAKE_MEMORY : 0) + (c->http3 ? http3_memory(c->http3) : 0);
	return m;
}

void quic_update_memory(struct quic_connection *c) {
	struct conn_context *w = c->quic->context;
	const struct conn_memory now = memory_of(c), before = c->memory;
	w->memory += now.kept - before.kept;
	w->quic_memory += (now.all - now.kept) - (before.all - before.kept);
	c->memory = now;
}
