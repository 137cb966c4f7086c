/* fetch.h - reads what an answer needs from a disk, by threads beside the loop, so that the loop finds it in memory:
 * the directories on the way to a file, the file, those beside it in other codings, the .htaccess of each directory,
 * and the rules of a site. */
#ifndef GATLING_FILES_FETCH_H
#define GATLING_FILES_FETCH_H

#include "gatling/base/hash.h"
#include "gatling/base/job.h"
#include "gatling/files/docroot.h"

enum {
	FETCHES_MAX = 256,       /* paths at once; more are refused */
	FETCH_THREADS = 16,      /* of a worker, each with a queue; with a fast disk the first does it all */
	FETCH_BYTES = 64 * 1024, /* of each file */
	FETCH_PATH_MAX = 4096,   /* bytes of a path with its NUL */
	WAITS_MAX = 6            /* jobs for which a request waits, one after the other */
};

struct fetcher;

/* Returns what the jobs for a path have as `fetches`. */
static inline uint64_t fetch_hash(struct slice path) { return hash_octets(0, path) | 1; }

/* Returns whether a request has waited until a path was fetched: `fetched` are WAITS_MAX hashes or 0; NULL: none. */
bool fetch_waited(const uint64_t *fetched, struct slice path);

/* jobs: the queues of FETCH_THREADS threads. These and the docroot must outlive it; only fetcher_free() comes after
 * jobs_free(). Returns NULL: ENOMEM. */
struct fetcher *fetcher_new(const struct docroot *docroot, struct jobs *const *jobs);
void fetcher_free(struct fetcher *fetcher); /* after jobs_free(); NULL is allowed */

/* Returns the job that reads what belongs to a path, or to several with a NUL between them, which may be under way for
 * another request; NULL: there are too many, or no memory or thread. */
struct job *fetch(struct fetcher *fetcher, struct slice path);

/* Returns whether that job is under way. */
bool fetch_is_under_way(const struct fetcher *fetcher, struct slice path);

#endif
