/* prefetch.h - threads beside the loop that read from a disk what a response needs, so that the loop finds it in
 * memory: the directories on the path of a file, the file, its precompressed copies, the .htaccess of each directory,
 * and the rules of a site. */
#ifndef GATLING_FILES_PREFETCH_H
#define GATLING_FILES_PREFETCH_H

#include "gatling/base/slice.h"
#include "gatling/base/job.h"
#include "gatling/files/tree.h"

enum {
	PREFETCHES_MAX = 256,       /* paths at once; more are refused */
	PREFETCH_THREADS = 16,      /* of a worker; with a fast disk one is enough */
	PREFETCH_BYTES = 64 * 1024, /* bytes that are read of each file */
	PREFETCH_PATH_MAX = 4096,   /* bytes of a path with its NUL */
	WAITS_MAX = 6               /* jobs that a request waits for, one after the other, at most */
};

struct prefetcher;

/* Returns the value of job.prefetches for a path. */
static inline uint64_t prefetch_hash(struct slice path) { return slice_hash(0, path) | 1; }

/* Returns whether a request has already waited for path to be prefetched. prefetched: WAITS_MAX hashes of the paths
 * that it has waited for (0: none), or NULL. */
bool prefetch_waited(const uint64_t *prefetched, struct slice path);

/* Returns a prefetcher, or NULL without memory. jobs and tree must outlive it, except that prefetcher_free() comes
 * after jobs_free(). What is on other machines is not prefetched: see remote.h. */
struct prefetcher *prefetcher_new(const struct tree *tree, struct jobs *jobs);
void prefetcher_free(struct prefetcher *prefetcher); /* after jobs_free(); NULL is allowed */

/* Returns the job that reads the files for a path. It may already be under way for another request. NULL: there are too
 * many, or there is no memory or no thread. */
struct job *prefetch(struct prefetcher *prefetcher, struct slice path);

#endif
