/* site_context.h - what a worker answers from: its caches, and the threads that do for it what takes long. */
#ifndef GATLING_SITE_SITE_CONTEXT_H
#define GATLING_SITE_SITE_CONTEXT_H

#include "gatling/acme/challenges.h"
#include "gatling/files/fetch.h"
#include "gatling/files/names.h"
#include "gatling/site/cache.h"
#include "gatling/site/listing/listing_cache.h"
#include "gatling/site/question.h"
#include "gatling/site/site.h"
#include "gatling/tls/certificates.h"

enum { FALLBACK_MAX = 1024 }; /* bytes of its URL */

struct site_options {
	enum vhosts vhosts;
	bool listings;
	bool cache_control;                 /* sent without being asked */
	bool symlinks_inside;               /* those that lead out of the root are not followed */
	uint64_t cache;                     /* bytes of files in memory, of all workers together */
	int cache_files;                    /* larger ones kept open, of all workers together; 0: not said */
	uint64_t gzip_cache;                /* bytes of what has been compressed, of all workers together */
	const char *fallback;               /* URL of a mirror for what is missing; NULL: none */
	struct upstreams_allowed upstreams; /* where requests may be passed on to */
	const char *health; /* path that says whether the server is about to end, see health.h; NULL: none */
};

/* Threads for what takes long: guessed passwords hold up no files, listings no compression, and a large file no small
 * ones. LISTING: listings, and gzip to be unpacked. FETCHING: the first of those that wait for the disk. */
enum site_thread {
	COMPRESSING,
	LISTING,
	CHECKING_PASSWORDS,
	HASHING,
	HASHING_LARGE,
	FETCHING,
	SITE_THREADS = FETCHING + FETCH_THREADS
};

struct site_context {
	const struct site_options *options;
	struct docroot docroot;
	struct names *names;
	struct fetcher *fetcher;
	struct jobs *jobs[SITE_THREADS];
	struct cache *cache;
	struct sites *sites;
	struct question *questions; /* QUESTIONS */
	struct basic_auth *auth;
	struct listing_cache *listings;
	unsigned https_port;                 /* to which clients of the plain ports are sent; 0: they are not, */
	const struct certificates *covered;  /* of the hosts with these certificates alone; NULL: of all */
	const struct challenges *challenges; /* to be answered from memory; NULL: none */
	int64_t now_ms;                      /* of the monotonic clock, see site_context_turn() */
	unsigned changes;                    /* sites_changes() that the cache knows of */
	const char *directory;               /* the path of the root outside of any chroot(2) */
	bool leaving;                        /* the server is about to end, without a successor */
};

/* Fills context, which has to stay where it is, from the directory root, for one of so many workers. kept: how many
 * files may be kept open; open: including those that are being sent. 0, or -1 with errno; site_context_close() is
 * called then, too. */
int site_context_open(struct site_context *context, io_loop *loop, int root, const struct site_options *options,
					  unsigned workers, unsigned kept, unsigned open);

/* Frees what site_context_open() made, when no request waits for a job and no response is being sent. */
void site_context_close(struct site_context *context);

/* Begins a turn of the worker, at that time of the monotonic clock. */
static inline void site_context_turn(struct site_context *context, int64_t now_ns) {
	context->now_ms = now_ns / 1000000;
	names_turn(context->names, now_ns);
}

/* Finishes what the threads have done, and resumes the requests that waited; after an io_wait() with io_woken(). */
static inline void site_context_collect(struct site_context *context) {
	for (int i = 0; i < SITE_THREADS; i++) jobs_collect(context->jobs[i]);
}

/* Returns how much work beside the loop is not finished. */
static inline unsigned site_context_jobs(const struct site_context *context) {
	unsigned sum = 0;
	for (int i = 0; i < SITE_THREADS; i++) sum += jobs_count(context->jobs[i]);
	return sum;
}

/* In how many milliseconds site_context_tidy() is due; -1: not at all. */
static inline int site_context_due(const struct site_context *context, int64_t now_ms) {
	return cache_due(context->cache, now_ms);
}

/* Closes what need not be open any more. */
static inline void site_context_tidy(struct site_context *context, int64_t now_ms) {
	unsigned changes = sites_changes(context->sites);
	cache_tidy(context->cache, now_ms, changes != context->changes);
	context->changes = changes;
}

#endif
