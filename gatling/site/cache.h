/* cache.h - what is at the paths of a worker: each resource with its representations, found, opened and made once. */
#ifndef GATLING_SITE_CACHE_H
#define GATLING_SITE_CACHE_H

#include "gatling/base/job.h"
#include "gatling/site/basic_auth.h"
#include "gatling/site/representation.h"

enum {
	CACHE_RESOURCES_MAX = 16384,
	CACHE_BYTES_MAX = 64 * 1024 * 1024,  /* of bodies and fields in memory, without what has been compressed here */
	CACHE_MAKING_MAX = 16 * 1024 * 1024, /* of files to be compressed; meanwhile others are sent as they are */
	CACHE_WANTED = 1024 * 1024 * 1024,   /* bytes of all files over DIGEST_SOON that are being hashed, in seconds */
	CACHE_CHECK_MS = 1000,               /* what was found is believed for so long without a look at the file system */
	CACHE_TIDY_MS = 1000,                /* between two looks for files that need not be open any more: */
	CACHE_UNUSED_MS = 60 * 1000          /* those that nobody has asked for so long, or that are gone */
};

/* What is at a path: the file itself, and beside it NAME.gz, NAME.zst and NAME.br, none of them older than it. */
struct resource {
	struct representation *representation[CODINGS]; /* in each coding; NULL: there is none (yet) */
	unsigned available; /* which of them there are, and which can be made: sets of 1 << coding */
	unsigned producible;
	struct realm *realm[REALMS_OF_PATH]; /* see basic_auth_realms() */
};

/* Where to look, and what its answer depends on. */
struct lookup {
	struct slice path;                /* relative to the root of the cache, not empty */
	const struct header_set *headers; /* NULL: none */
	bool restricted;                  /* by the site */
	bool stands_in;                   /* it is sent for another path, at which there is nothing, */
	bool error;                       /* with a status that says so */
};

struct cache_options {
	const struct docroot *docroot; /* these are the caller's */
	struct basic_auth *auth;
	struct jobs *compressing, *unpacking, *hashing, *hashing_large;
	unsigned descriptors; /* of files, kept open at most */
	unsigned open;        /* and with those that are still being sent; more: EMFILE */
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
int cache_find(struct cache *cache, const struct lookup *wanted, int64_t now_ms, struct resource **resource);

/* Makes what it has not got in a coding but can be made: a job to be waited for. NULL: it cannot be made now. */
struct job *cache_convert(struct cache *cache, struct resource *resource, enum coding coding);

/* Finds out what is in a large file of it that has no entity-tag yet: a job that may be waited for. NULL: not now. */
struct job *cache_hash(struct cache *cache, struct resource *resource, enum coding coding);

/* Whether that is worth waiting for; wanted: the entity-tag decides what the answer is. */
bool cache_hashes_soon(const struct cache *cache, const struct representation *file, bool wanted);

/* In how many milliseconds cache_tidy() is due; -1: nothing is open. */
int cache_due(const struct cache *cache, int64_t now_ms);

/* Closes files that are gone, so that the file system gets their room back, or that nobody has asked for in a minute;
 * if the fields of an owner have changed, all: those with others are found no more. */
void cache_tidy(struct cache *cache, int64_t now_ms, bool fields_changed);

/* Forgets it: a file of it has changed. */
void cache_drop(struct cache *cache, struct resource *resource);

#endif
