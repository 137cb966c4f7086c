/* no_brotli.c - see brotli.h: the build has no libbrotlienc. */
#include <errno.h>

#include "gatling/codec/brotli.h"

const bool brotli_is_built = false;

int brotli_compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size) {
	(void)content, (void)stop, (void)body, (void)size;
	return ENOTSUP;
}
