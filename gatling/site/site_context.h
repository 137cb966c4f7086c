/* site_context.h - what a worker answers requests with: its caches, and its threads for what takes long. */
#ifndef GATLING_SITE_SITE_CONTEXT_H
#define GATLING_SITE_SITE_CONTEXT_H

#include "gatling/acme/challenges.h"
#include "gatling/files/prefetch.h"
#include "gatling/files/names.h"
#include "gatling/site/cache/answer_cache.h"
#include "gatling/site/cache/cache.h"
#include "gatling/site/listing/listing_cache.h"
#include "gatling/site/site.h"
#include "gatling/tls/certificates.h"

struct answer_room;
struct decision; /* answer/decision.h */

enum {
	FALLBACK_MAX = 1024, /* bytes of its URL */
	SITE_STOP_MS = 1000  /* for which each kind of threads may end its jobs: one at the lowest priority can take long */
};

struct site_options {
	enum vhosts vhosts;
	bool listings;
	bool cache_control;   /* send a default Cache-Control */
	bool symlinks_inside; /* do not follow those that lead out of the root */
	uint64_t cache;       /* bytes of files in memory, of all workers together */
	int cache_files;      /* larger files kept open, of all workers together; 0: not given */
	int older;           /* descriptor of a directory with older versions of the root, see cache_register(); -1: none */
	uint64_t gzip_cache; /* bytes of compressed files in memory, of all workers together; 0: compress nothing */
	bool upstream_headers;                  /* the owner's fields are for the responses of upstreams, too */
	const char *fallback;                   /* URL to which requests for missing files are redirected; NULL: none */
	struct upstreams_allowed upstreams;     /* to which requests may be passed on */
	struct upstream_limits upstream_limits; /* of these requests, where the owner has no others */
	uid_t starter;                          /* the user who started the server, whose rules may do so */
	const char *health;                     /* path of health checks, see health.h; NULL: none */
};

/* Threads for what takes long. They are separate so that guessed passwords delay no files, listings delay no
 * compression, large files delay no small ones, and differences, and better compression, which takes
 * seconds, delay nothing else. LISTING also measures files that will be unpacked. PREFETCHING has
 * PREFETCH_THREADS, the others one each. Those of other machines have their own (remote.h). */
enum site_thread {
	COMPRESSING,
	IMPROVING,
	SUBTRACTING,
	LISTING,
	CHECKING_PASSWORDS,
	HASHING,
	HASHING_LARGE,
	PREFETCHING,
	SITE_THREADS
};

struct site_context {
	const struct site_options *options;
	struct tree tree;
	struct remote *remote; /* tree.remote, if that is needed */
	struct names *names;
	struct prefetcher *prefetcher;
	struct jobs *jobs[SITE_THREADS];
	struct cache *cache;
	struct sites *sites;
	struct answer_cache *answers;
	struct basic_auth *auth;
	struct listing_cache *listings;
	struct answer_room *room;
	bool https;                          /* the server has a port for it */
	unsigned https_port;                 /* to which requests to the plain ports are redirected; 0: they are not */
	const struct certificates *covered;  /* only hosts with these certificates are redirected; NULL: all */
	const struct challenges *challenges; /* ACME challenges that are answered from memory; NULL: none */
	int64_t now_ns, now_ms;              /* io_now_ns() and io_now() of this turn */
	unsigned changes;                    /* sites_changes() at the last site_context_tidy() */
	const char *directory;               /* the path of the root outside of any chroot(2) */
	bool closed;                         /* the directory is missing: everything is answered with 503 */
	bool leaving;                        /* the server is about to end, without a successor */
	void (*explain)(const struct decision *decided); /* is told of each; NULL: nobody is */
};

/* Fills in the context of one of that many workers, from the directory root. It must stay where it is. mounts: what is
 * mounted, NULL: unknown. kept: limit of files that the cache keeps open; open: limit of open files, including those
 * being sent. Returns 0, or -1 with errno; site_context_close() must be called in either case. */
int site_context_open(struct site_context *context, io_loop *loop, int root, struct mounts *mounts,
					  const struct site_options *options, unsigned workers, unsigned kept, unsigned open);

/* Frees what site_context_open() made. Call it when no request waits for a job and no response is being sent. Returns
 * false if a thread has not ended: then the context, all that it points to and the loop have to stay until the process
 * does. */
bool site_context_close(struct site_context *context);

/* Notes whether files are on other machines. Call it about once a second. */
static inline void site_context_look(struct site_context *context) {
	context->tree.remote = remote_is_needed(context->remote) ? context->remote : NULL;
}

/* Finishes the jobs that the threads have done, and resumes the requests that waited for them. Call it after an
 * io_wait() that was woken, see io_woken(). */
static inline void site_context_collect(struct site_context *context) {
	for (int i = 0; i < SITE_THREADS; i++) jobs_collect(context->jobs[i]);
	remote_collect(context->remote);
}

/* Returns the number of unfinished jobs. */
static inline unsigned site_context_jobs(const struct site_context *context) {
	unsigned sum = remote_jobs_count(context->remote);
	for (int i = 0; i < SITE_THREADS; i++) sum += jobs_count(context->jobs[i]);
	return sum;
}

/* Returns the milliseconds until site_context_tidy() is due, -1 if it is not. */
int site_context_due(const struct site_context *context, int64_t now_ms);

/* Closes files that need not be open any more, and gives up calls for files on other machines that hang. */
void site_context_tidy(struct site_context *context, int64_t now_ms);

#endif
