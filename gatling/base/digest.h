/* digest.h - SHA-256 of content (FIPS 180-4), for those who want to check what they received. Of files it is remembered
 * by their version, for all workers. All functions are thread-safe. */
#ifndef GATLING_BASE_DIGEST_H
#define GATLING_BASE_DIGEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/file_version.h"
#include "gatling/base/slice.h"

enum {
	DIGEST_LENGTH = 32,    /* bytes */
	DIGESTS_KEPT = 4096,   /* files; a new one takes the place of another */
	DIGEST_PIECE = 1 << 18 /* bytes of a file that are read at a time */
};

/* Write the digest to digest (DIGEST_LENGTH bytes), in a thread beside the loop, since it takes long: of bytes in
 * memory, or of the first size bytes of a file. patient: other reads go first (io_reads_stand_back()). Return 0 or an
 * errno; EAGAIN: the file is shorter; ECANCELED: *stop has become true. */
int digest_of_memory(struct slice content, unsigned char *digest);
int digest_of_file(int file, uint64_t size, bool patient, const atomic_bool *stop, unsigned char *digest);

/* Finds the digest of a file. Returns false if it is not known. */
bool digest_find(const struct file_version *version, unsigned char *digest);

/* Remembers it, unless the version is file_version_recent(), since then the file may change without a change of its
 * times. */
void digest_keep(const struct file_version *version, const unsigned char *digest);

#endif
