/* upstream_writers.h - the writers (writer.h) with which a worker compresses responses of upstreams. */
#ifndef GATLING_UPSTREAM_UPSTREAM_WRITERS_H
#define GATLING_UPSTREAM_UPSTREAM_WRITERS_H

#include "gatling/codec/writer.h"
#include "gatling/http/coding.h"

enum {
	UPSTREAM_WRITERS_MAX = 16 * 1024 * 1024, /* bytes for all of a worker: a quarter of what clients may take */
	UPSTREAM_WRITERS_LASTING = 2 /* this part (1/2) is the most for streams of events, which stay open for long */
};

/* All zero at first. */
struct upstream_writers {
	size_t held;          /* bytes of those that are lent */
	struct writer *spare; /* kept, since some cost much to make; NULL: none */
};

/* Returns a writer for CODING_GZIP or CODING_ZSTD, or NULL without memory or if all take too much. lasts: it is for a
 * stream of events. */
struct writer *upstream_writers_take(struct upstream_writers *writers, enum coding coding, bool lasts);

/* Takes it back. */
void upstream_writers_return(struct upstream_writers *writers, struct writer *writer);

void upstream_writers_free(struct upstream_writers *writers);

#endif
