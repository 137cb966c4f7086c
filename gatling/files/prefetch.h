/* prefetch.h - threads beside the loop that read from a disk what a response needs, so that the loop finds it in
 * memory: the directories on the path of a file, the file, its precompressed copies, the .htaccess of each directory,
 * and the rules of a site. */
#ifndef GATLING_FILES_PREFETCH_H
#define GATLING_FILES_PREFETCH_H

#include "gatling/base/hash.h"
#include "gatling/base/job.h"
#include "gatling/files/docroot.h"

enum {
	PREFETCHES_MAX = 256,       /* paths at once; more are refused */
	PREFETCH_THREADS = 16,      /* of a worker, each with a queue; with a fast disk the first one is enough */
	PREFETCH_BYTES = 64 * 1024, /* bytes that are read of each file */
	PREFETCH_PATH_MAX = 4096,   /* bytes of a path with its NUL */
	WAITS_MAX = 6               /* jobs that a request waits for, one after the other, at most */
};

struct prefetcher;

/* Returns the value of job.prefetches for a path. */
static inline uint64_t prefetch_hash(struct slice path) { return hash_octets(0, path) | 1; }

/* Returns whether a request has already waited for path to be prefetched. prefetched: WAITS_MAX hashes of the paths
 * that it has waited for (0: none), or NULL. */
bool prefetch_waited(const uint64_t *prefetched, struct slice path);

/* Returns a prefetcher, or NULL without memory. jobs: the queues of PREFETCH_THREADS threads. They and the docroot must
 * outlive the prefetcher, except that prefetcher_free() comes after jobs_free(). */
struct prefetcher *prefetcher_new(const struct docroot *docroot, struct jobs *const *jobs);
void prefetcher_free(struct prefetcher *prefetcher); /* after jobs_free(); NULL is allowed */

/* Returns the job that reads the files for a path, or for several with a NUL between them. It may already be under way
 * for another request. NULL: there are too many, or there is no memory or no thread. */
struct job *prefetch(struct prefetcher *prefetcher, struct slice path);

/* Returns whether the job for a path is under way. */
bool prefetch_is_under_way(const struct prefetcher *prefetcher, struct slice path);

#endif
