/* brotli.c - see brotli.h. */
#include "gatling/codec/brotli.h"

#include <errno.h>
#include <stdlib.h>

#include "gatling/codec/brotli_stream.h"
#include "gatling/codec/result.h"

enum {
	PIECE = 64 * 1024,           /* bytes; between two looks at *stop */
	BEST_MOST = 2 * 1024 * 1024, /* bytes of content that is compressed with QUALITY_BEST */
	QUALITY_BEST = 11,           /* the smallest result, */
	QUALITY_LARGE = 9            /* and one that is a tenth larger after a twentieth of the time */
};

const bool brotli_is_built = true;

/* Returns the smallest window that has room for all of the content (RFC 7932, section 9.1). */
static uint32_t window_for(size_t length) {
	uint32_t bits = BROTLI_MIN_WINDOW_BITS;
	while (bits < BROTLI_MAX_WINDOW_BITS && (((size_t)1 << bits) - 16) < length) bits++;
	return bits;
}

BrotliEncoderState *brotli_stream_new(size_t length, uint32_t quality) {
	BrotliEncoderState *s = BrotliEncoderCreateInstance(NULL, NULL, NULL);
	if (!s) return NULL;
	BrotliEncoderSetParameter(s, BROTLI_PARAM_QUALITY, quality);
	BrotliEncoderSetParameter(s, BROTLI_PARAM_LGWIN, window_for(length));
	BrotliEncoderSetParameter(s, BROTLI_PARAM_SIZE_HINT, (uint32_t)length);
	return s;
}

int brotli_stream_end(BrotliEncoderState *s, struct slice content, const atomic_bool *stop, char *out, size_t room,
					  uint64_t *size) {
	uint8_t *to = (uint8_t *)out;
	while (!BrotliEncoderIsFinished(s)) {
		const struct slice piece = slice_first(content, content.length < PIECE ? content.length : PIECE);
		const bool last = piece.length == content.length;
		const uint8_t *from = (const uint8_t *)piece.at;
		size_t left = piece.length;
		if (atomic_load(stop)) return ECANCELED;
		if (!BrotliEncoderCompressStream(s, last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS, &left, &from,
										 &room, &to, NULL))
			return ENOMEM;
		slice_drop(&content, piece.length - left);
		if (!room && !BrotliEncoderIsFinished(s)) return EFBIG;
	}
	*size = (uint64_t)(to - (uint8_t *)out);
	return 0;
}

int brotli_compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size) {
	const uint32_t quality = content.length <= BEST_MOST ? QUALITY_BEST : QUALITY_LARGE;
	BrotliEncoderState *s = brotli_stream_new(content.length, quality);
	char *out = s ? malloc(content.length + 1) : NULL;
	*size = 0;
	const int error = out ? brotli_stream_end(s, content, stop, out, content.length, size) : ENOMEM;
	if (s) BrotliEncoderDestroyInstance(s);
	return result_end(error, out, (size_t)*size, body);
}
