/* upstream_writers.c - see upstream_writers.h. */
#include "gatling/upstream/upstream_writers.h"

#include "gatling/codec/gzip.h"
#include "gatling/codec/zstd.h"

struct writer *upstream_writers_take(struct upstream_writers *all, enum coding coding, bool lasts) {
	const size_t most = UPSTREAM_WRITERS_MAX / (lasts ? UPSTREAM_WRITERS_LASTING : 1);
	struct writer *w = NULL;
	if (coding == CODING_ZSTD) {
		w = all->spare ? all->spare : zstd_writer_new();
		all->spare = NULL;
	} else {
		w = gzip_writer_new();
	}
	if (!w) return NULL;
	all->held += w->codec->memory;
	if (all->held <= most) return w;
	upstream_writers_return(all, w);
	return NULL;
}

void upstream_writers_return(struct upstream_writers *all, struct writer *w) {
	all->held -= w->codec->memory;
	if (!all->spare && writer_reset(w)) all->spare = w; /* those of zstd alone can be reset */
	else writer_free(w);
}

void upstream_writers_free(struct upstream_writers *all) {
	writer_free(all->spare);
	all->spare = NULL;
}
