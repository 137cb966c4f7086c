/* listing_cache.h - the listings of a worker: made beside the loop, shared by requests for the same directory, and
 * bounded in memory. */
#ifndef GATLING_SITE_LISTING_LISTING_CACHE_H
#define GATLING_SITE_LISTING_LISTING_CACHE_H

#include "gatling/base/job.h"
#include "gatling/site/listing/listing.h"
#include "io/iob.h"

enum {
	LISTING_CACHE_KEPT = 16,                     /* listings at a time; EBUSY if all of them are being made */
	LISTING_CACHE_KEPT_MS = 1000,                /* a listing is used for so long */
	LISTING_CACHE_BYTES_MAX = 256 * 1024 * 1024, /* memory of all that are kept or being sent by all workers, but */
	LISTING_CACHE_BYTES_OWN = 16 * 1024 * 1024, /* so much of each. Above it, new ones are cut to so many bytes each; */
	LISTING_CACHE_BYTES_LEAST = 256 * 1024      /* above twice as much, EBUSY */
};

struct listing_cache;

/* Returns NULL if there is no memory. The cache is that of one of so many workers. The pointers are the caller's;
 * *now_ms is of the monotonic clock and always up to date. */
struct listing_cache *listing_cache_new(const struct docroot *docroot, struct jobs *jobs, const int64_t *now_ms,
										unsigned workers);

/* To be called after jobs_free(), and when no listing is being sent. */
void listing_cache_free(struct listing_cache *listings);

struct listing_result {
	struct job *job; /* to wait for; NULL: the listing is there */
	struct listing_reader *reader;
	uint64_t length; /* bytes */
	enum coding coding;
};

/* Finds the listing that listing_make() would make, or starts making it; chooses request->bytes itself. Returns 0 with
 * *found, or an errno of listing_make(). may_wait: the caller can wait; otherwise EBUSY is returned where a wait would
 * be necessary. */
int listing_cache_find(struct listing_cache *listings, const struct listing_request *request, bool may_wait,
					   struct listing_result *found);

#endif
