/* zstd.c - see zstd.h. */
#include "gatling/codec/zstd.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum {
	PIECE = 64 * 1024, /* bytes; between two looks at *stop */
	LEVEL = 19         /* the last that does without larger windows than clients must accept (RFC 9659) */
};

const bool zstd_is_built = true;

/* Compresses to out, which has as many bytes as the content. Returns 0 with *size, or an errno. */
static int compress_all(ZSTD_CCtx *context, struct slice content, const atomic_bool *stop, char *out, uint64_t *size) {
	ZSTD_outBuffer to = {.dst = out, .size = content.length};
	size_t unwritten = 1;
	while (unwritten) {
		const size_t length = content.length < PIECE ? content.length : PIECE;
		const bool last = length == content.length;
		ZSTD_inBuffer from = {.src = content.at, .size = length};
		if (atomic_load(stop)) return ECANCELED;
		const size_t result = ZSTD_compressStream2(context, &to, &from, last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(result)) return ENOMEM;
		if (to.pos == to.size && result) return EFBIG;
		slice_drop(&content, from.pos);
		unwritten = last ? result : 1;
	}
	*size = to.pos;
	return 0;
}

int zstd_compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size) {
	ZSTD_CCtx *context = ZSTD_createCCtx();
	char *out = context ? malloc(content.length + 1) : NULL;
	int error = ENOMEM;
	if (out && !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL)) &&
		!ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context, content.length)))
		error = compress_all(context, content, stop, out, size);
	ZSTD_freeCCtx(context);
	if (error) {
		free(out);
		return error;
	}
	char *fitting = realloc(out, *size);
	*body = fitting ? fitting : out;
	return 0;
}
