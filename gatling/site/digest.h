/* digest.h - what is in a large file, as a hash of it: the entity-tag is made of that, so that the same content has the
 * same one on every machine and after a restart. A hash is kept, for all workers, by what stat(2) says of the file. */
#ifndef GATLING_SITE_DIGEST_H
#define GATLING_SITE_DIGEST_H

#include <stdatomic.h>

#include "gatling/base/file_version.h"

enum {
	DIGEST_LENGTH = 32 /* bytes: SHA-256 */,
	DIGESTS_KEPT = 16384,
	DIGEST_PIECE = 256 * 1024,
	DIGEST_SOON = 4 * 1024 * 1024 /* bytes of a file that is hashed in some milliseconds */
};

/* Hashes size bytes of a file, for a thread beside the loop; of more than DIGEST_SOON, one in the process at a time.
 * 0; or an errno: EIO: it is shorter, ECANCELED: *stop, ... */
int digest_compute(int file, uint64_t size, const atomic_bool *stop, unsigned char *digest);

/* The hash that is kept of a file; false: none. Thread-safe. */
bool digest_find(const struct file_version *identity, unsigned char *digest);

/* Keeps it; of a file that may still change without its times showing it, file_version_recent(), it must not be. */
void digest_keep(const struct file_version *identity, const unsigned char *digest);

#endif
