/* content.h - what a worker answers from: its caches, and the threads that do for it what takes long. */
#ifndef GATLING_SITE_CONTENT_H
#define GATLING_SITE_CONTENT_H

#include "gatling/acme/challenges.h"
#include "gatling/files/fetch.h"
#include "gatling/files/names.h"
#include "gatling/site/cache.h"
#include "gatling/site/listing/listing_cache.h"
#include "gatling/site/question.h"
#include "gatling/site/site.h"
#include "gatling/tls/certificates.h"

enum { FALLBACK_MAX = 1024 }; /* bytes of its URL */

struct content_options {
	enum vhosts vhosts;
	bool listings;
	bool cache_control;                 /* sent without being asked */
	bool symlinks_inside;               /* those that lead out of the root are not followed */
	uint64_t cache;                     /* bytes of small files in memory, of all workers together */
	int cache_files;                    /* larger ones kept open, of all workers together; 0: not said */
	uint64_t gzip_cache;                /* bytes of what has been compressed, of all workers together */
	const char *fallback;               /* URL of a mirror for what is missing; NULL: none */
	struct upstreams_allowed upstreams; /* where requests may be passed on to */
	const char *health; /* path that says whether the server is about to end, see health.h; NULL: none */
};

/* Threads for what takes long: guessed passwords hold up no files, listings no compression, and a large file no small
 * ones. LISTING: listings, and gzip to be unpacked. FETCHING: the first of those that wait for the disk. */
enum content_thread {
	COMPRESSING,
	LISTING,
	CHECKING_PASSWORDS,
	HASHING,
	HASHING_LARGE,
	FETCHING,
	CONTENT_THREADS = FETCHING + FETCH_THREADS
};

struct content {
	const struct content_options *options;
	struct docroot docroot;
	struct names *names;
	struct fetcher *fetcher;
	struct jobs *jobs[CONTENT_THREADS];
	struct cache *cache;
	struct sites *sites;
	struct question *questions; /* QUESTIONS */
	struct basic_auth *auth;
	struct listing_cache *listings;
	unsigned https_port;                 /* to which clients of the plain ports are sent; 0: they are not, */
	const struct certificates *covered;  /* of the hosts with these certificates alone; NULL: of all */
	const struct challenges *challenges; /* to be answered from memory; NULL: none */
	int64_t now_ms;                      /* of the monotonic clock, see content_turn() */
	unsigned changes;                    /* sites_changes() that the cache knows of */
	const char *directory;               /* the path of the root outside of any chroot(2) */
	bool leaving;                        /* the server is about to end, without a successor */
};

/* Fills content, which has to stay where it is, from the directory root, for one of so many workers. kept: how many
 * files may be kept open; open: including those that are being sent. 0, or -1 with errno; content_close() is called
 * then, too. */
int content_open(struct content *content, io_loop *loop, int root, const struct content_options *options,
				 unsigned workers, unsigned kept, unsigned open);

/* Frees what content_open() made, when no request waits for a job and no response is being sent. */
void content_close(struct content *content);

/* Begins a turn of the worker, at that time of the monotonic clock. */
static inline void content_turn(struct content *content, int64_t now_ns) {
	content->now_ms = now_ns / 1000000;
	names_turn(content->names, now_ns);
}

/* Finishes what the threads have done, and resumes the requests that waited; after an io_wait() with io_woken(). */
static inline void content_collect(struct content *content) {
	for (int i = 0; i < CONTENT_THREADS; i++) jobs_collect(content->jobs[i]);
}

/* Returns how much work beside the loop is not finished. */
static inline unsigned content_jobs(const struct content *content) {
	unsigned sum = 0;
	for (int i = 0; i < CONTENT_THREADS; i++) sum += jobs_count(content->jobs[i]);
	return sum;
}

/* In how many milliseconds content_tidy() is due; -1: not at all. */
static inline int content_due(const struct content *content, int64_t now_ms) {
	return cache_due(content->cache, now_ms);
}

/* Closes what need not be open any more. */
static inline void content_tidy(struct content *content, int64_t now_ms) {
	unsigned changes = sites_changes(content->sites);
	cache_tidy(content->cache, now_ms, changes != content->changes);
	content->changes = changes;
}

#endif
