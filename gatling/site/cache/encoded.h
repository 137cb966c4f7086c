/* encoded.h - the content of files as it was compressed here, once for all workers. It is found by the version of its
 * file, and stays as long as a worker has a reference to it. All functions are thread-safe. */
#ifndef GATLING_SITE_CACHE_ENCODED_H
#define GATLING_SITE_CACHE_ENCODED_H

#include "gatling/base/file_version.h"
#include "gatling/base/slice.h"
#include "gatling/http/coding.h"

/* Never changes. */
struct encoded {
	struct slice content;
	/* for encoded.c: */
	struct file_version version;
	enum coding coding;
	unsigned references;
	struct encoded *next;
};

/* Returns a new reference to the content of that version in a coding, or NULL if no worker has any. A version that is
 * file_version_recent() is never found, since the file may change without a change of its times. */
struct encoded *encoded_find(const struct file_version *version, enum coding coding);

/* Keeps content, and returns a new reference to it, or to what another thread has kept meanwhile. body is malloc'd, and
 * taken over. Returns NULL without memory. */
struct encoded *encoded_keep(const struct file_version *version, enum coding coding, char *body, uint64_t size);

/* Releases a reference. NULL is allowed. */
void encoded_release(struct encoded *encoded);

#endif
