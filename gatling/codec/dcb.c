/* dcb.c - see dcb.h. */
#include "gatling/codec/dcb.h"

#include <errno.h>
#include <stdlib.h>

#include "gatling/codec/brotli_stream.h"
#include "gatling/codec/result.h"

enum {
	QUALITY = 5, /* of what a request waits for: 9 takes two to five times as long and is no smaller, 11 is a tenth
				  * smaller after forty times as long */
	DIGEST = 32
};

static const struct slice magic = SLICE("\xff\x44\x43\x42");

const bool dcb_is_built = true;

/* Compresses to out, which has as many bytes as the content. */
static int compress(struct slice dictionary, struct slice content, const atomic_bool *stop, char *out, uint64_t *size) {
	BrotliEncoderState *s = brotli_stream_new(content.length, QUALITY);
	BrotliEncoderPreparedDictionary *prepared =
		s ? BrotliEncoderPrepareDictionary(BROTLI_SHARED_DICTIONARY_RAW, dictionary.length,
										   (const uint8_t *)dictionary.at, QUALITY, NULL, NULL, NULL)
		  : NULL;
	const bool ready = prepared && BrotliEncoderAttachPreparedDictionary(s, prepared);
	const int error = ready ? brotli_stream_end(s, content, stop, out, content.length, size) : ENOMEM;
	if (s) BrotliEncoderDestroyInstance(s);
	BrotliEncoderDestroyPreparedDictionary(prepared);
	return error;
}

int dcb_compress(struct slice dictionary, const unsigned char *digest, struct slice content, const atomic_bool *stop,
				 char **body, uint64_t *size) {
	const size_t header = magic.length + DIGEST;
	char *out = malloc(header + content.length);
	uint64_t length = 0;
	if (out) memcpy(text_copy(out, magic), digest, DIGEST);
	const int error = out ? compress(dictionary, content, stop, out + header, &length) : ENOMEM;
	*size = header + length;
	return result_end(error, out, (size_t)*size, body);
}
