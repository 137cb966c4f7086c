/* listings.h - the listings of a worker: made beside the loop, shared by those who ask at the same time, and no more of
 * them than there is memory for. */
#ifndef GATLING_LISTINGS_H
#define GATLING_LISTINGS_H

#include "gatling/jobs.h"
#include "gatling/listing.h"
#include "io/iob.h"

enum {
	LISTINGS_KEPT = 16,                     /* at a time; if all of them are being made, EBUSY */
	LISTINGS_KEPT_MS = 1000,                /* what was found is believed for so long */
	LISTINGS_BYTES_MAX = 256 * 1024 * 1024, /* of those kept and those being sent; over it they are cut to */
	LISTINGS_BYTES_LEAST = 256 * 1024       /* bytes each, and over twice as much it is EBUSY */
};

struct listings;

/* NULL: ENOMEM. All three are the caller's; *now_ms is of the monotonic clock, and always up to date. */
struct listings *listings_new(const struct tree *tree, struct jobs *jobs, const int64_t *now_ms);
void listings_free(struct listings *listings); /* after jobs_free(), and when none is being sent */

enum { LISTINGS_READER = 12 * 1024 }; /* bytes of memory that a reader takes at most */

struct listings_found {
	struct job *job; /* to be waited for; NULL: it is there, and to be written once by listings_fill() */
	void *reader;    /* freed by listings_reader_free() */
	uint64_t length; /* bytes */
	enum coding coding;
};

/* Finds or starts the listing that listing_make() makes, but for the number of bytes. 0 with *found, or its errno.
 * patient: the caller can wait; else EBUSY. */
int listings_find(struct listings *listings, const struct listing_wanted *wanted, bool patient,
				  struct listings_found *found);

ssize_t listings_fill(void *reader, char *buffer, size_t size);
void listings_reader_free(void *reader);

#endif
