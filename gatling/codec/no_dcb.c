/* no_dcb.c - see dcb.h: the build has no libbrotlienc, or one that knows no dictionaries. */
#include <errno.h>

#include "gatling/codec/dcb.h"

const bool dcb_is_built = false;

int dcb_compress(struct slice dictionary, const unsigned char *digest, struct slice content, const atomic_bool *stop,
				 char **body, uint64_t *size) {
	(void)dictionary, (void)digest, (void)content, (void)stop, (void)body, (void)size;
	return ENOTSUP;
}
