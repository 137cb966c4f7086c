/* gzip.h - compresses and decompresses gzip (RFC 1952) with zlib. */
#ifndef GATLING_CODEC_GZIP_H
#define GATLING_CODEC_GZIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gatling/base/slice.h"
#include "gatling/codec/writer.h"
#include "io/iob.h"

enum {
	GZIP_LEAST = 256,            /* bytes: gzip does not save a packet on a smaller file */
	GZIP_MOST = 8 * 1024 * 1024, /* bytes: a larger file is not compressed */
	GZIP_LEVEL = 6,              /* of zlib: 1 is fast, 9 small */
	GZIP_LEVEL_ONCE = 1          /* for content that is sent only once */
};

/* Returns whether content of a media type, which may have parameters, is worth compressing: text in the widest
 * sense. */
bool gzip_worthwhile(struct slice type);

/* Input: bytes in memory, or if memory is NULL, a whole file. The caller still owns it. */
struct gzip_bytes {
	const char *memory;
	int file;
	uint64_t length;
};

/* The next three functions take long, so they are called in a thread beside the loop. They return ECANCELED when *stop
 * becomes true. */

/* Compresses the bytes into *body, *size bytes to be freed with free(). Returns 0 or an errno; EFBIG: the result would
 * not be smaller. */
int gzip_compress(const struct gzip_bytes *bytes, const atomic_bool *stop, char **body, uint64_t *size);

/* Does the same with the length bytes that fill(owner, ...) generates, and GZIP_LEVEL_ONCE. stop may be NULL. */
int gzip_compress_generated(iob_fill *fill, void *owner, uint64_t length, const atomic_bool *stop, char **body,
							uint64_t *size);

/* Decompresses gzip to count its bytes. Returns 0 or an errno; EILSEQ: it is malformed. */
int gzip_measure(const struct gzip_bytes *bytes, const atomic_bool *stop, uint64_t *size);

/* Decompresses the beginning of gzip, at most size bytes, to out. Returns how many; 0 also if it is malformed, or
 * without memory. *whole: there is no more. */
size_t gzip_start(struct slice gzip, char *out, size_t size, bool *whole);

/* Decompresses gzip piece by piece, for iob_addsource(). From the first piece on it takes GZIP_READER bytes of memory
 * (zlib's manual: a window of 32 KB and about 7 KB). The bytes must stay valid until release(owner), which
 * gzip_reader_new() calls, too, when it returns NULL without memory. unchanged(owner) is called after each piece has
 * been read; if it returns false, gzip_reader_fill() fails with EIO. NULL: it is not called. */
enum { GZIP_READER = 56 * 1024 };
struct gzip_reader;
struct gzip_reader *gzip_reader_new(const struct gzip_bytes *bytes, iob_unchanged *unchanged, iob_release *release,
									void *owner);
ssize_t gzip_reader_fill(void *reader, char *buffer, size_t size);
void gzip_reader_free(void *reader);

/* Returns a writer with GZIP_LEVEL_ONCE, or NULL without memory. */
struct writer *gzip_writer_new(void);

#endif
