/* walk.h - a walk over all connections of a worker, those of TCP and those of QUIC. */
#ifndef GATLING_LOAD_WALK_H
#define GATLING_LOAD_WALK_H

#include <stdlib.h>
#include <string.h>

#include "gatling/conn/conn_context.h"

/* All zero at first. */
struct walked {
	int kind, next;
	int number; /* of the connection, as in conn_kind.h */
	const struct conn_kind *is;
	void *connection;
};

/* Goes to the next connection. Returns false if there is none. */
static inline bool walk_on(struct walked *at, const struct conn_context *w) {
	for (; at->kind < CONN_KINDS; at->kind++, at->next = 0) {
		at->is = w->kinds[at->kind];
		if (!at->is) continue;
		const int bound = at->is->bound(w);
		while (at->next < bound) {
			at->number = at->next++;
			if ((at->connection = at->is->at(w, at->number))) return true;
		}
	}
	return false;
}

/* Gives an array that has an element (size bytes) for each number of connections room for more; the new ones are all
 * zero. Returns the array, which may have moved, or NULL without memory: then it is as it was. */
static inline void *walk_grow(void *array, int count, int bound, size_t size) {
	char *grown = realloc(array, (size_t)bound * size);
	if (grown) memset(grown + (size_t)count * size, 0, (size_t)(bound - count) * size);
	return grown;
}

/* What a connection has of something; 0: nothing. */
typedef int64_t walk_fn(const struct conn_context *context, const struct walked *at);

#endif
