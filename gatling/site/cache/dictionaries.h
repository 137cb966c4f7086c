/* dictionaries.h - what files contained that clients may still have, so that a new version of one can be sent as the
 * difference to an old one (RFC 9842). Kept for all workers, packed with zstd; the longest unused go first. All
 * functions are thread-safe. */
#ifndef GATLING_SITE_CACHE_DICTIONARIES_H
#define GATLING_SITE_CACHE_DICTIONARIES_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/digest.h"
#include "gatling/base/slice.h"

enum {
	DICTIONARY_MAX = 4 * 1024 * 1024, /* bytes of one, and of a file that is compressed with it: both fit in the window
									   * of 8 MB that every client has (RFC 9842, section 2.2) */
	DICTIONARIES_MAX = 512,
	DICTIONARY_FAMILY_MAX = 1024 /* bytes of the name of a family */
};

/* Files of a family are versions of each other: their paths differ in the hash. It is the path with an asterisk in the
 * place of that. */

/* Keeps content, unless it is there already; `most` is the limit of bytes for all. Called in a thread beside the loop,
 * since it packs it. digest: its SHA-256. */
void dictionary_keep(const unsigned char *digest, struct slice family, struct slice content, uint64_t most);

/* Returns whether there is content with that digest, of that family. */
bool dictionary_is_kept(const unsigned char *digest, struct slice family);

/* Returns the content, to be freed with free(), or NULL if it is not there or memory runs out. Called in a thread. */
char *dictionary_unpack(const unsigned char *digest, struct slice family, size_t *length);

#endif
