/* cache.h - the resources of a worker by path, each with its representations, which it finds, opens and generates. */
#ifndef GATLING_SITE_CACHE_H
#define GATLING_SITE_CACHE_H

#include "gatling/base/job.h"
#include "gatling/site/basic_auth.h"
#include "gatling/site/representation.h"

enum {
	CACHE_RESOURCE_BYTES = 4096, /* of cache_options.bytes; there are no more resources than parts of that size */
	CACHE_COMPRESSING_MAX = 16 * 1024 * 1024, /* bytes of files in compression; beyond it others are sent as they are */
	CACHE_HASHING_MAX = 1024 * 1024 * 1024,   /* bytes of files that are being hashed, which takes seconds */
	/* A file of up to this part of cache_options.bytes, and of so many bytes, is copied, see cache_copied(); all copies
	 * together take up to that part. */
	CACHE_COPY_PART = 4,
	CACHE_COPY_MAX = 16 * 1024 * 1024,
	CACHE_COPIES_PART = 2,
	CACHE_CHECK_MS = 1000,      /* for so long an entry is valid after a look at the file system and its directory */
	CACHE_TIDY_MS = 1000,       /* between two calls of cache_tidy() */
	CACHE_UNUSED_MS = 60 * 1000 /* after which it closes a file */
};

/* The file at a path, and NAME.gz, NAME.zst and NAME.br beside it, unless they are older. */
struct resource {
	struct representation *representation[CODINGS]; /* in each coding; NULL: none (yet) */
	struct representation *copy[CODINGS];           /* for the cache: the same in memory; NULL: none */
	unsigned available, producible;      /* those that exist, and that can be generated: sets of 1 << coding */
	struct realm *realm[REALMS_OF_PATH]; /* see basic_auth_realms() */
	int64_t until_ms;                    /* it is valid without a look at the file system; 0: it has to be looked for */
	struct resource **asked_at;          /* set to NULL when the cache forgets it; NULL: nothing */
};

/* A path, and what else the response depends on. */
struct lookup {
	struct slice path;                /* relative to the root of the cache, not empty */
	const struct header_set *headers; /* NULL: none */
	bool restricted;                  /* the site needs a password */
	bool stands_in;                   /* the file is sent for another path, which does not exist, */
	bool error;                       /* with the status of an error */
	bool again;                       /* the request has waited: what it finds now does not count as a hit */
	bool fetched;                     /* it has been read beside the loop: what the loop reads may wait for a disk */
};

struct cache_options {
	const struct docroot *docroot; /* these are the caller's */
	struct names *names;
	struct basic_auth *auth;
	struct jobs *compressing, *unpacking, *hashing, *hashing_large;
	uint64_t bytes; /* of bodies and fields in memory at most, without those compressed here or still being sent */
	unsigned descriptors; /* of files that the cache keeps open at most */
	unsigned open;        /* of files that are open at most, also to be sent; more: EMFILE */
	uint64_t gzip_bytes;  /* compressed here and in memory at most, also to be sent; 0: compress nothing */
	bool cache_control;   /* send a default Cache-Control */
};

struct cache;

/* Returns NULL: ENOMEM. */
struct cache *cache_new(const struct cache_options *options);
void cache_free(struct cache *cache); /* after jobs_free() */

/* Finds the world-readable regular file at a path. Returns 0 with *resource, which is the cache's and lasts until the
 * next call; or an errno: ENOENT, ENOTDIR, EACCES (also: not world-readable, not a regular file, a private key),
 * EISDIR, EXDEV (leads out of the root), EMFILE, ENOMEM, ...; EINPROGRESS: it has to be fetched. now_ms is of the
 * monotonic clock. */
int cache_find(struct cache *cache, const struct lookup *lookup, int64_t now_ms, struct resource **resource);

/* Counts a resource as found again, without cache_find(). */
void cache_found(struct resource *resource, int64_t now_ms);

/* Generates a producible representation. Returns the job to wait for; NULL: it cannot be generated now. */
struct job *cache_convert(struct cache *cache, struct resource *resource, enum coding coding);

/* Begins to hash a large file that has no entity-tag yet. Returns the job if it is worth waiting for: it is done soon,
 * or, with needed, the answer depends on the entity-tag; else NULL. */
struct job *cache_hash(struct cache *cache, struct resource *resource, enum coding coding, bool needed);

/* Returns what to send instead of a representation of this resource on a connection for which the server copies all
 * bytes, since it encrypts or frames them: the same in memory, if it was read, or the representation itself. A file
 * that is requested again is read beside the loop, one at a time. Copies that are neither being sent nor were returned
 * in the last CACHE_CHECK_MS make room for others, and for small files. */
struct representation *cache_copied(struct cache *cache, struct resource *resource,
									struct representation *representation);

struct cache_usage {
	unsigned files;       /* that are remembered */
	size_t bytes;         /* as in cache_options */
	unsigned descriptors; /* those that are open */
};

struct cache_usage cache_usage(const struct cache *cache);

/* Returns the milliseconds until cache_tidy() is due; -1: no file is open. */
int cache_due(const struct cache *cache, int64_t now_ms);

/* Closes files that were removed, so that the file system gets their space back, and files that were not requested for
 * CACHE_UNUSED_MS; all of them if the owner has changed fields: entries with the old ones are not found any more. */
void cache_tidy(struct cache *cache, int64_t now_ms, bool fields_changed);

/* Forgets a resource, of which a file has changed. */
void cache_drop(struct cache *cache, struct resource *resource);

/* Returns whether more than three quarters of the files that may be open are. */
bool cache_lacks_files(const struct cache *cache);

#endif
