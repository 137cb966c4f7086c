/* no_zstd.c - see zstd.h: the build has no libzstd. */
#include <errno.h>

#include "gatling/codec/zstd.h"

const bool zstd_is_built = false;

int zstd_compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size) {
	(void)content, (void)stop, (void)body, (void)size;
	return ENOTSUP;
}
