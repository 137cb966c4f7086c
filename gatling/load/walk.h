/* walk.h - a walk over all connections of a worker, those of TCP and those of QUIC. */
#ifndef GATLING_LOAD_WALK_H
#define GATLING_LOAD_WALK_H

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

/* What a connection has of something; 0: nothing. */
typedef int64_t walk_fn(const struct conn_context *context, const struct walked *at);

#endif
