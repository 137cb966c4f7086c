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
	DICTIONARIES_MAX = 4096,
	DICTIONARY_PATTERN_MAX = 1024 /* bytes of a pattern */
};

/* A dictionary is for the files whose paths match its pattern: they begin as that does before its asterisk, and end as
 * it does behind that. Paths are those of the cache. */

/* Keeps content, unless it is there already; `most` is the limit of bytes for all. Called in a thread beside the loop,
 * since it packs it. digest: its SHA-256. */
void dictionary_keep(const unsigned char *digest, struct slice pattern, struct slice content, uint64_t most);

/* Returns whether there is content with that digest, of that pattern. */
bool dictionary_is_kept(const unsigned char *digest, struct slice pattern);

/* Returns whether there is content with that digest for a path. */
bool dictionary_is_found(const unsigned char *digest, struct slice path);

/* Returns that content, to be freed with free(), or NULL if it is not there or memory runs out. Called in a thread. */
char *dictionary_unpack(const unsigned char *digest, struct slice path, size_t *length);

#endif
