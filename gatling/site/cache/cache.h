/* cache.h - a worker's cache of resources, by path. It finds and opens their files, and generates other
 * representations. */
#ifndef GATLING_SITE_CACHE_CACHE_H
#define GATLING_SITE_CACHE_CACHE_H

#include "gatling/base/job.h"
#include "gatling/media/alternate.h"
#include "gatling/site/access/basic_auth.h"
#include "gatling/site/cache/freshness.h"
#include "gatling/site/cache/representation.h"

enum {
	CACHE_RESOURCE_BYTES = 4096, /* cache_options.bytes divided by this is the limit of resources */
	/* Small files in memory, including those that have left the cache and are still being sent, take at most so many
	 * times cache_options.bytes. Beyond that, small files are sent from descriptors, as large ones are. */
	CACHE_LOADED_PARTS = 2,
	/* What a file is compressed with beside the loop only when it is requested again: requests do not wait for it. */
	CODINGS_LATER = 1 << CODING_BR | 1 << CODING_ZSTD,
	CACHE_IMPROVING_MAX = 16,                 /* files that wait for that, in a worker */
	CACHE_IMPROVE_AGAIN_MS = 1000,            /* after it was not possible */
	CACHE_COMPRESSING_MAX = 16 * 1024 * 1024, /* bytes of files being compressed; beyond it, others are sent as is */
	/* Limits of copies, see cache_copied(): a file of at most 1 / CACHE_COPY_PART of cache_options.bytes, and of at
	 * most CACHE_COPY_MAX bytes, is copied; all copies take at most 1 / CACHE_COPIES_PART of cache_options.bytes. */
	CACHE_COPY_PART = 4,
	CACHE_COPY_MAX = 16 * 1024 * 1024,
	CACHE_COPIES_PART = 2,
	CACHE_DIGEST_MAX = 1024 * 1024 * 1024,   /* bytes of large files whose digests are being computed */
	CACHE_SUBTRACTING_MAX = 4 * 1024 * 1024, /* of files of which differences are being made, but at least one file */
	CACHE_TIDY_MS = 1000,                    /* between two calls of cache_tidy() */
	CACHE_UNUSED_MS = 60 * 1000              /* after which an unused file is closed */
};

/* The file at a path, and NAME.gz, NAME.zst and NAME.br beside it, unless they are older. The alternates are resources
 * of their own. */
struct resource {
	struct representation *representation[CODINGS]; /* by coding; NULL: not there, or not generated yet */
	struct representation *copy[CODINGS];           /* internal to the cache: copies in memory; NULL: none */
	unsigned available, producible; /* codings that are there, and that can be generated: sets of 1 << coding */
	bool versioned;                 /* clients may have older versions of it, see cache_delta() */
	bool offered;                   /* browsers may be offered it as a dictionary, see representation->offered */
	uint64_t alternate[ALTERNATES]; /* bytes of the files beside it that show the same; 0: not there, or too old */
	struct guard guard;             /* see basic_auth_guard() */
	struct freshness freshness;     /* while it lasts, it may be used without cache_find() */
	struct resource **kept_at;      /* where answer_cache.h keeps it: NULL is put there when it is dropped; or NULL */
};

/* What cache_find() looks for: a path, and what else the response depends on. */
struct lookup {
	struct slice path;                /* relative to the root of the cache, not empty */
	size_t site;                      /* bytes of it that are the directory of the site, with its slash */
	const struct header_set *headers; /* NULL: none */
	bool restricted;                  /* the site needs a password */
	bool is_substitute; /* the file is sent for another path: as an error page, or since there is no file */
	bool error;         /* the file is sent with the status of an error */
	bool is_alternate;  /* the client asked for its media type (alternate.h) */
	bool again;         /* the request has waited: it does not count as another hit */
	bool prefetched;    /* a thread has prefetched it, so that the loop may make calls that wait for a disk */
};

struct cache_options {
	const struct tree *tree; /* not owned, like the next members */
	struct names *names;
	struct basic_auth *auth;
	struct jobs *compressing, *improving, *subtracting, *unpacking, *hashing, *hashing_large;
	uint64_t bytes;       /* limit of bodies and fields in memory, without what is compressed here or only being sent */
	unsigned descriptors; /* limit of files that the cache keeps open */
	unsigned open;        /* limit of open files, including those being sent; beyond it: EMFILE */
	uint64_t gzip_bytes;  /* limit of bodies compressed here, including those being sent; 0: compress nothing */
	int older;            /* descriptor of a directory in which others have the older versions of the root; -1: none */
	uint64_t dictionary_bytes; /* limit of what is kept as dictionaries, for all workers; 0: nothing */
	bool cache_control;        /* send a default Cache-Control */
};

struct cache;

/* Returns a cache, or NULL without memory. */
struct cache *cache_new(const struct cache_options *options);
void cache_free(struct cache *cache); /* call it after jobs_free() */

/* Finds the world-readable regular file at a path. Returns 0 and sets *resource, which belongs to the cache and is
 * valid until the next call. Otherwise returns an errno: ENOENT, ENOTDIR, EACCES (also: not world-readable, not a
 * regular file, a private key), EISDIR, EXDEV (leads out of the root), EMFILE, ENOMEM, ...; EINPROGRESS if it has to be
 * prefetched first (prefetch.h), or looked at by a thread (tree_awaits()). now_ms is of the monotonic clock. */
int cache_find(struct cache *cache, const struct lookup *lookup, int64_t now_ms, struct resource **resource);

/* Counts a hit of a resource that was found without cache_find(). */
void cache_found(struct resource *resource, int64_t now_ms);

/* Starts to generate a producible representation, not of CODINGS_LATER. Returns the job to wait for, or NULL if that is
 * not possible now. */
struct job *cache_convert(struct cache *cache, struct resource *resource, enum coding coding);

/* Has a thread generate a producible representation of CODINGS_LATER, if the file was requested before, and there is
 * room for the result. One file at a time is compressed so in the process. */
void cache_improve(struct cache *cache, struct resource *resource, enum coding coding, int64_t now_ms);

/* Starts to hash a file that has no entity-tag yet: one of up to CONTENT_HASH_SOON bytes, or a larger one of which a
 * request brings an entity-tag, or that is requested as a whole once more. Returns the job if the request should wait
 * for it, since it is done soon, or since the answer depends on it (ETAG_AWAITED). Otherwise returns NULL; also, if the
 * entity-tag is only sent, for a file that may be in the middle of a write (FILE_VERSION_SETTLES_MS). */
struct job *cache_hash(struct cache *cache, struct resource *resource, enum coding coding, enum etag_use use);

/* Starts to compute the digest of a representation (representation_digest()). Returns the job if the request should
 * wait for it: not for a file of more than CONTENT_HASH_SOON bytes, whose digest later requests get. */
struct job *cache_digest(struct cache *cache, struct resource *resource, struct representation *representation);

/* Has a thread keep the content of a versioned or offered resource, and of its older versions, as dictionaries
 * (dictionaries.h), once. It looks for those in the same directory, and in that of the older roots. */
void cache_register(struct cache *cache, struct resource *resource);

/* Returns the difference of a versioned or offered resource to the dictionary with a digest (DIGEST_LENGTH bytes), in
 * one of the codings of a set (of 1 << coding), not empty: one that is there already, else CODING_DCB, which is
 * smaller. Otherwise returns NULL, and sets *job to what the request should wait for, or to NULL if there is no such
 * dictionary, or the difference cannot be made. */
struct representation *cache_delta(struct cache *cache, struct resource *resource, const unsigned char *digest,
								   unsigned codings, struct job **job);

/* Returns the copy in memory of a representation, or the representation itself if there is none, without a reference.
 * It is for connections on which the server copies all bytes, since it encrypts or frames them. A file that is
 * requested again is copied by a thread, one file at a time. Copies that are not being sent, and were not returned in
 * the last CACHE_CHECK_MS, make room for others and for small files. */
struct representation *cache_copied(struct cache *cache, struct resource *resource,
									struct representation *representation);

struct cache_usage {
	unsigned files;       /* in the cache */
	size_t bytes;         /* as in cache_options */
	unsigned descriptors; /* those that are open */
};

struct cache_usage cache_usage(const struct cache *cache);

/* Returns the milliseconds until cache_tidy() is due, or -1 if no file is open. */
int cache_due(const struct cache *cache, int64_t now_ms);

/* Closes files that were removed, so that the file system gets their space back, and files that were not requested for
 * CACHE_UNUSED_MS. fields_changed: closes all of them, since entries with the owner's old fields cannot be found any
 * more. */
void cache_tidy(struct cache *cache, int64_t now_ms, bool fields_changed);

/* Drops a resource of which a file has changed. */
void cache_drop(struct cache *cache, struct resource *resource);

/* Returns whether more than three quarters of the files that may be open are open. */
bool cache_lacks_files(const struct cache *cache);

/* Returns whether half of those that may be open beside the cache's are free. */
bool cache_spares_files(const struct cache *cache);

#endif
