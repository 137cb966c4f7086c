/* brotli_stream.h - the inside of brotli.c that dcb.c uses, too. */
#ifndef GATLING_CODEC_BROTLI_STREAM_H
#define GATLING_CODEC_BROTLI_STREAM_H

#include <brotli/encode.h>
#include <stdatomic.h>
#include <stdint.h>

#include "gatling/base/slice.h"

/* Returns an encoder for content of that length, or NULL without memory. */
BrotliEncoderState *brotli_stream_new(size_t length, uint32_t quality);

/* Compresses all content to out, which has room for `room` bytes. Returns 0 with *size, or an errno as
 * brotli_compress() does. */
int brotli_stream_end(BrotliEncoderState *encoder, struct slice content, const atomic_bool *stop, char *out,
					  size_t room, uint64_t *size);

#endif
