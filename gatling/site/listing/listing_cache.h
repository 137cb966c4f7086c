/* listing_cache.h - the listings of a worker: made by a thread, shared by requests for the same directory, and bounded
 * in memory. */
#ifndef GATLING_SITE_LISTING_LISTING_CACHE_H
#define GATLING_SITE_LISTING_LISTING_CACHE_H

#include "gatling/base/job.h"
#include "gatling/files/tree.h"
#include "gatling/site/listing/listing.h"
#include "io/iob.h"

enum {
	LISTING_CACHE_KEPT = 16,      /* listings at a time; EBUSY if all of them are being made */
	LISTING_CACHE_KEPT_MS = 1000, /* how long a listing is used */
	/* Limits of the memory of listings that are kept or being sent. A worker may use its share of
	 * LISTING_CACHE_BYTES_MAX, but at least LISTING_CACHE_BYTES_OWN. Beyond that, new listings are cut to
	 * LISTING_CACHE_BYTES_LEAST; beyond twice as much, there are none (EBUSY). */
	LISTING_CACHE_BYTES_MAX = 256 * 1024 * 1024, /* bytes for all workers together */
	LISTING_CACHE_BYTES_OWN = 16 * 1024 * 1024,  /* bytes */
	LISTING_CACHE_BYTES_LEAST = 256 * 1024       /* bytes */
};

struct listing_cache;

/* Returns a cache for one of that many workers, or NULL without memory. The pointers stay the caller's; *now_ms is of
 * the monotonic clock, and always up to date. */
struct listing_cache *listing_cache_new(const struct tree *tree, struct jobs *jobs, const int64_t *now_ms,
										unsigned workers);

/* Frees the cache. Call it after jobs_free(), when no listing is being sent. */
void listing_cache_free(struct listing_cache *listings);

struct listing_result {
	struct job *job; /* to wait for; NULL: the listing is there */
	struct listing_reader *reader;
	uint64_t length; /* bytes */
	enum coding coding;
};

/* Finds a listing, or has a job make it with listing_make(); chooses request->bytes itself. Returns 0 and fills in
 * *found, or returns an errno of listing_make(). EBUSY: there are too many, or it would have to wait and may_wait is
 * false. */
int listing_cache_find(struct listing_cache *listings, const struct listing_request *request, bool may_wait,
					   struct listing_result *found);

#endif
