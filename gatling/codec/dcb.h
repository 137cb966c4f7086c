/* dcb.h - compresses with brotli and a dictionary (RFC 9842, section 4), by libbrotlienc from version 1.1 on. no_dcb.c
 * is for builds without it. */
#ifndef GATLING_CODEC_DCB_H
#define GATLING_CODEC_DCB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/slice.h"

extern const bool dcb_is_built;

/* Writes the difference of content to a dictionary, in the format dcb: digest is the SHA-256 of that (32 bytes). Takes
 * milliseconds, so it is called in a thread beside the loop. The rest is as for brotli_compress(). */
int dcb_compress(struct slice dictionary, const unsigned char *digest, struct slice content, const atomic_bool *stop,
				 char **body, uint64_t *size);

#endif
