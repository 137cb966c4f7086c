/* cache.h - what is at the paths of a worker: each resource with its representations, found, opened and made once. */
#ifndef GATLING_CACHE_H
#define GATLING_CACHE_H

#include "gatling/file.h"
#include "gatling/guard.h"
#include "gatling/jobs.h"

enum {
	CACHE_RESOURCES_MAX = 16384,
	CACHE_BYTES_MAX = 64 * 1024 * 1024,  /* of bodies and fields in memory, without what has been compressed here */
	CACHE_MAKING_MAX = 16 * 1024 * 1024, /* of files to be compressed; meanwhile others are sent as they are */
	CACHE_CHECK_MS = 1000                /* what was found is believed for so long without a look at the file system */
};

/* What is at a path: the file itself, and beside it NAME.gz, NAME.zst and NAME.br, none of them older than it. */
struct resource {
	struct file *as[CODINGS]; /* in each coding; NULL: there is none (yet) */
	unsigned there;           /* which of them there are, and which can be made: sets of 1 << coding */
	unsigned makes;
	struct guard *guard[GUARDS_OF_PATH]; /* see guards_of_path() */
};

/* Where to look, and what its answer depends on. */
struct wanted {
	struct slice path;                /* relative to the root of the cache, not empty */
	const struct header_set *headers; /* NULL: none */
	bool guarded;                     /* by the site */
};

struct cache_options {
	const struct tree *tree; /* these are the caller's */
	struct guards *guards;
	struct jobs *compressing, *unpacking;
	unsigned descriptors; /* of files, open at most */
	uint64_t gzip_bytes;  /* of what has been compressed here, and what of that is still being sent; 0: nothing is */
	bool cache_control;   /* sent for files of which the owner says nothing */
};

struct cache;

/* NULL: ENOMEM. */
struct cache *cache_new(const struct cache_options *options);
void cache_free(struct cache *cache); /* after jobs_free() */

/* Finds the world-readable regular file at a place. 0 with *resource, which is the cache's and good until the next
 * call; or an errno: ENOENT, ENOTDIR, EACCES (also: not world-readable, not a regular file, a private key), EISDIR,
 * EXDEV (leads out), EMFILE, ENOMEM, ... now_ms is of the monotonic clock. */
int cache_find(struct cache *cache, const struct wanted *wanted, int64_t now_ms, struct resource **resource);

/* Makes what it has not got in a coding but can be made: a job to be waited for. NULL: it cannot be made now. */
struct job *cache_make(struct cache *cache, struct resource *resource, enum coding coding);

/* Forgets it: a file of it has changed. */
void cache_drop(struct cache *cache, struct resource *resource);

#endif
