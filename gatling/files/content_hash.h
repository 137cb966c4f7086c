/* content_hash.h - hashes of the content of files for their entity-tags, so that the same content has the same
 * entity-tag on every machine and after a restart. All workers share the hashes, which are found by the version of a
 * file.
 *
 * The hash is MurmurHash3 (Austin Appleby, in the public domain), the variant of 128 bits for 64-bit machines. It has
 * to tell the versions of a file apart, but not to withstand their author, who could only fool his own readers. A small
 * file is hashed on the loop, at some GB/s on any machine; SHA-256 takes ten times as long without instructions for
 * it. */
#ifndef GATLING_FILES_CONTENT_HASH_H
#define GATLING_FILES_CONTENT_HASH_H

#include <stdatomic.h>
#include <stddef.h>

#include "gatling/base/file_version.h"

enum {
	CONTENT_HASH_LENGTH = 16,
	CONTENT_HASHES_KEPT = 1024 * 1024, /* entries of 24 bytes */
	CONTENT_HASH_PIECE = 256 * 1024,
	CONTENT_HASH_SOON = 4 * 1024 * 1024, /* bytes; hashing so many takes some milliseconds */
	CONTENT_HASH_SLICE = 8 * 1024 * 1024 /* bytes; a larger file is hashed in slices of so many */
};

/* Writes the hash of bytes in memory to content_hash (CONTENT_HASH_LENGTH bytes). */
void content_hash_memory(const char *at, size_t length, unsigned char *content_hash);

/* Writes the hash of the first size bytes of a file to content_hash. Called in a thread beside the loop, since it takes
 * long. Returns 0 or an errno; EAGAIN: the file is shorter; ECANCELED: *stop has become true. */
int content_hash_compute(int file, uint64_t size, const atomic_bool *stop, unsigned char *content_hash);

/* How far a large file has been hashed. Threads that hash the same version of it share this. */
struct content_hash_state;

/* Hashes the next slice of a file, also in such a thread, after the threads that came before. One slice is read at a
 * time in the process, and none while a client waits for another read (io_reads_stand_back()). *state: NULL at first;
 * passed to content_hash_leave() at last. Returns EINPROGRESS if there is more, otherwise as above; ESTALE: the file
 * has changed. */
int content_hash_slice(struct content_hash_state **state, int file, uint64_t size, const atomic_bool *stop,
					   unsigned char *content_hash);
void content_hash_leave(struct content_hash_state *state); /* NULL is allowed */

/* Finds the hash of a file. Returns false if it is not known. Thread-safe. */
bool content_hash_find(const struct file_version *version, unsigned char *content_hash);

/* Remembers a hash. The version must not be file_version_recent(), since such a file may change without a change of its
 * times. */
void content_hash_keep(const struct file_version *version, const unsigned char *content_hash);

#endif
