/* listing_cache.h - the listings of a worker: made beside the loop, shared by those who ask at the same time, and no
 * more of them than there is memory for. */
#ifndef GATLING_SITE_LISTING_LISTING_CACHE_H
#define GATLING_SITE_LISTING_LISTING_CACHE_H

#include "gatling/base/job.h"
#include "gatling/site/listing/listing.h"
#include "io/iob.h"

enum {
	LISTING_CACHE_KEPT = 16,                     /* at a time; if all of them are being made, EBUSY */
	LISTING_CACHE_KEPT_MS = 1000,                /* what was found is believed for so long */
	LISTING_CACHE_BYTES_MAX = 256 * 1024 * 1024, /* of those kept and those being sent; over it they are cut to */
	LISTING_CACHE_BYTES_LEAST = 256 * 1024       /* bytes each, and over twice as much it is EBUSY */
};

struct listing_cache;

/* NULL: ENOMEM. All three are the caller's; *now_ms is of the monotonic clock, and always up to date. */
struct listing_cache *listing_cache_new(const struct docroot *docroot, struct jobs *jobs, const int64_t *now_ms);
void listing_cache_free(struct listing_cache *listings); /* after jobs_free(), and when none is being sent */

enum { LISTING_CACHE_BODY = 12 * 1024 }; /* bytes of memory that a reader takes at most */

struct listing_result {
	struct job *job; /* to be waited for; NULL: it is there, and to be written once by listing_cache_body_fill() */
	void *reader;    /* freed by listing_cache_body_free() */
	uint64_t length; /* bytes */
	enum coding coding;
};

/* Finds or starts the listing that listing_make() makes, but for the number of bytes. 0 with *found, or its errno.
 * patient: the caller can wait; else EBUSY. */
int listing_cache_find(struct listing_cache *listings, const struct listing_request *wanted, bool patient,
					   struct listing_result *found);

ssize_t listing_cache_body_fill(void *reader, char *buffer, size_t size);
void listing_cache_body_free(void *reader);

#endif
