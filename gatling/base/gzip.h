/* gzip.h - gzip (RFC 1952) of files, by zlib. */
#ifndef GATLING_BASE_GZIP_H
#define GATLING_BASE_GZIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/iob.h"

enum {
	GZIP_LEAST = 256,            /* bytes of a file that is worth it: less would not get smaller by a packet */
	GZIP_MOST = 8 * 1024 * 1024, /* of a file that is compressed */
	GZIP_LEVEL = 6,              /* of zlib: 1 is fast, 9 small */
	GZIP_LEVEL_MADE = 1          /* of what is made for one answer */
};

/* Whether what has that media type gets smaller: text in the widest sense. */
bool gzip_worthwhile(const char *type);

/* What takes long, for a thread beside the loop: if *stop becomes true, it ends with ECANCELED. */

/* Bytes that are compressed or are to be: in memory, or (NULL) a whole file. Who calls keeps them. */
struct gzip_bytes {
	const char *memory;
	int file;
	uint64_t length;
};

/* Compresses the bytes into a malloc'd *body. 0; or an errno: EFBIG: it does not get smaller. */
int gzip_compress(const struct gzip_bytes *bytes, const atomic_bool *stop, char **body, uint64_t *size);

/* The same for the length bytes that fill(owner, ...) makes; stop may be NULL. */
int gzip_made(iob_fill *fill, void *owner, uint64_t length, const atomic_bool *stop, char **body, uint64_t *size);

/* Unpacks gzip to see how many bytes are in it. 0; or an errno: EILSEQ: it is broken, ... */
int gzip_measure(const struct gzip_bytes *bytes, const atomic_bool *stop, uint64_t *size);

/* Unpacks gzip piece by piece, for iob_addsource(), with GZIP_READER bytes of memory from the first piece
 * on (zlib's manual: a window of 32 KB and about 7 KB). The bytes stay until release(owner), which is called, too,
 * when there is no memory (NULL). */
enum { GZIP_READER = 56 * 1024 };
struct gzip_reader;
struct gzip_reader *gzip_reader_new(const struct gzip_bytes *bytes, iob_release *release, void *owner);
ssize_t gzip_reader_fill(void *reader, char *buffer, size_t size);
void gzip_reader_free(void *reader);

#endif
