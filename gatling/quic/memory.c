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

void quic_count_memory(struct quic_connection *c, size_t now) {
	c->quic->context->quic_memory += now - c->memory;
	c->memory = now;
}

size_t quic_connection_memory(const struct quic_connection *c) {
	return sizeof *c + c->library_memory + (c->ssl ? TLS_HANDSHAKE_MEMORY : 0) +
		   (c->http3 ? http3_memory(c->http3) : 0);
}
