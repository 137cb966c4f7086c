/* writer.h - compresses content as it comes, in one of several codings: gzip_writer_new() and zstd_writer_new() make
 * writers. */
#ifndef GATLING_CODEC_WRITER_H
#define GATLING_CODEC_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "gatling/base/slice.h"

enum { WRITER_OUT = 8 * 1024 /* bytes that are compressed at a time */ };

enum writer_step {
	WRITER_MORE,  /* more content follows */
	WRITER_FLUSH, /* more content may come much later: the content so far can be decompressed */
	WRITER_END    /* the content is complete */
};

struct writer;

/* What a coding does. */
struct writer_codec {
	size_t memory; /* bytes that a writer takes */
	/* Compresses from the front of *content, which it drops there, to writer->out. Returns how many bytes of that it
	 * has filled; when the last ones are there, sets writer->ended. */
	size_t (*compress)(struct writer *writer, struct slice *content, enum writer_step step);
	bool (*reset)(struct writer *writer); /* see writer_reset(); NULL: it is not worth it */
	void (*free)(struct writer *writer);
};

/* The beginning of all writers. */
struct writer {
	const struct writer_codec *codec;
	struct slice made; /* the part of `out` that has not been taken */
	bool ended;
	char out[WRITER_OUT];
};

/* Compresses content from the front of *content, as much as there is room for, and drops it there. Returns the
 * compressed bytes, the same ones until writer_taken(); empty: none yet. */
struct slice writer_put(struct writer *writer, struct slice *content, enum writer_step step);

/* Drops the bytes that writer_put() has returned. Returns whether they were the last ones. */
bool writer_taken(struct writer *writer);

/* Makes a writer ready for other content. Returns false if a new one is to be made instead. */
bool writer_reset(struct writer *writer);

/* Prepares what is common to all writers. */
void writer_begin(struct writer *writer, const struct writer_codec *codec);

void writer_free(struct writer *writer); /* NULL is allowed */

#endif
