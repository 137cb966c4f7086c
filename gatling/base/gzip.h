/* gzip.h - compresses and decompresses gzip (RFC 1952) with zlib. */
#ifndef GATLING_BASE_GZIP_H
#define GATLING_BASE_GZIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gatling/base/slice.h"
#include "io/iob.h"

enum {
	GZIP_LEAST = 256,            /* bytes: gzip does not save a packet on a smaller file */
	GZIP_MOST = 8 * 1024 * 1024, /* bytes of a file that is compressed */
	GZIP_LEVEL = 6,              /* of zlib: 1 is fast, 9 small */
	GZIP_LEVEL_ONCE = 1          /* for content that is there for one answer */
};

/* Returns whether content of a media type, which may have parameters, gets smaller: text in the widest sense. */
bool gzip_worthwhile(struct slice type);

/* Input in memory, or a whole file if memory is NULL. It stays the caller's. */
struct gzip_bytes {
	const char *memory;
	int file;
	uint64_t length;
};

/* The next three take long and belong in a thread beside the loop: when *stop becomes true, they return ECANCELED. */

/* Compresses the bytes into a malloc'd *body. Returns 0 or an errno; EFBIG: they do not get smaller. */
int gzip_compress(const struct gzip_bytes *bytes, const atomic_bool *stop, char **body, uint64_t *size);

/* Does the same with the `length` bytes that fill(owner, ...) generates. stop may be NULL. */
int gzip_compress_generated(iob_fill *fill, void *owner, uint64_t length, const atomic_bool *stop, char **body,
							uint64_t *size);

/* Decompresses gzip to count its bytes. Returns 0 or an errno; EILSEQ: it is broken. */
int gzip_measure(const struct gzip_bytes *bytes, const atomic_bool *stop, uint64_t *size);

/* Decompresses gzip piece by piece, for iob_addsource(), and takes GZIP_READER bytes of memory from the first piece on
 * (zlib's manual: a window of 32 KB and about 7 KB). The bytes must last until release(owner), which gzip_reader_new()
 * calls, too, if there is no memory: then it returns NULL. A file has to be unchanged whenever it has been read; NULL:
 * it is not asked. */
enum { GZIP_READER = 56 * 1024 };
struct gzip_reader;
struct gzip_reader *gzip_reader_new(const struct gzip_bytes *bytes, iob_unchanged *unchanged, iob_release *release,
									void *owner);
ssize_t gzip_reader_fill(void *reader, char *buffer, size_t size);
void gzip_reader_free(void *reader);

/* Compresses content as it comes, with GZIP_LEVEL_ONCE and GZIP_WRITER bytes of memory (zconf.h: 32 KB with these
 * windows, and about 6 KB). */
enum { GZIP_WRITER = 48 * 1024 };
struct gzip_writer;
struct gzip_writer *gzip_writer_new(void); /* NULL: ENOMEM */

enum gzip_step {
	GZIP_MORE,  /* more content follows */
	GZIP_FLUSH, /* it may be long until then: what there is can be decompressed */
	GZIP_END    /* it is complete */
};

/* Takes content off the front of *content, as far as there is room. Returns what has been compressed, the same until
 * gzip_writer_taken(); empty: nothing yet. */
struct slice gzip_writer_put(struct gzip_writer *writer, struct slice *content, enum gzip_step step);

/* Goes on. Returns whether everything has been taken, and its end. */
bool gzip_writer_taken(struct gzip_writer *writer);

void gzip_writer_free(struct gzip_writer *writer); /* NULL is allowed */

#endif
