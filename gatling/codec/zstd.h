/* zstd.h - compresses with zstd (RFC 8878), by libzstd. no_zstd.c is for builds without it. */
#ifndef GATLING_CODEC_ZSTD_H
#define GATLING_CODEC_ZSTD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/slice.h"

extern const bool zstd_is_built;

/* Compresses content as well as that pays, which takes seconds and some ten megabytes. Called in a thread beside the
 * loop. Writes *body, *size bytes to be freed with free(). Returns 0 or an errno; EFBIG: the result would not be
 * smaller; ECANCELED: *stop has become true; ENOTSUP: it is not built. */
int zstd_compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size);

#endif
