/* zstd.h - compresses with zstd (RFC 8878), by libzstd. no_zstd.c is for builds without it. Most functions take long,
 * so they are called in threads beside the loop. */
#ifndef GATLING_CODEC_ZSTD_H
#define GATLING_CODEC_ZSTD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/slice.h"
#include "gatling/codec/writer.h"

extern const bool zstd_is_built;

/* Compresses content as well as that pays, which takes seconds and some ten megabytes. Writes *body, *size bytes to be
 * freed with free(). Returns 0 or an errno; EFBIG: the result would not be smaller; ECANCELED: *stop has become true;
 * ENOTSUP: it is not built. */
int zstd_compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size);

/* Does the same, but writes the difference to a dictionary, in the format dcz (RFC 9842, section 5): digest is the
 * SHA-256 of that (32 bytes). Takes milliseconds. The two may be 8 MB together. */
int zstd_compress_with(struct slice dictionary, const unsigned char *digest, struct slice content,
					   const atomic_bool *stop, char **body, uint64_t *size);

/* Returns a writer, or NULL without memory. Unlike the other functions it is called in the loop, as those of writers
 * are.
 */
struct writer *zstd_writer_new(void);

/* Pack content, quickly, and unpack it again. Return it, to be freed with free(), or NULL. */
char *zstd_pack(struct slice content, size_t *size);
char *zstd_unpack(struct slice packed, size_t size);

#endif
