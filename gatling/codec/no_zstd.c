/* no_zstd.c - see zstd.h: the build has no libzstd. */
#include <errno.h>
#include <stddef.h>

#include "gatling/codec/zstd.h"

const bool zstd_is_built = false;

int zstd_compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size) {
	(void)content, (void)stop, (void)body, (void)size;
	return ENOTSUP;
}

int zstd_compress_with(struct slice dictionary, const unsigned char *digest, struct slice content,
					   const atomic_bool *stop, char **body, uint64_t *size) {
	(void)dictionary, (void)digest;
	return zstd_compress(content, stop, body, size);
}

struct writer *zstd_writer_new(void) {
	return NULL;
}

char *zstd_pack(struct slice content, size_t *size) {
	(void)content, (void)size;
	return NULL;
}

char *zstd_unpack(struct slice packed, size_t size) {
	(void)packed, (void)size;
	return NULL;
}
