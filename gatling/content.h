/* content.h - what a worker answers from: its caches, and the threads that do for it what takes long. */
#ifndef GATLING_CONTENT_H
#define GATLING_CONTENT_H

#include "gatling/cache.h"
#include "gatling/listings.h"
#include "gatling/options.h"
#include "gatling/site.h"

struct content {
	const struct options *options;
	struct tree tree;
	/* Each with a thread of its own, so that who guesses passwords holds up no files, and who lists directories no
	 * compression. */
	struct jobs *compressing, *reading, *checking;
	struct cache *cache;
	struct sites *sites;
	struct guards *guards;
	struct listings *listings;
	unsigned https_port; /* to which clients of the plain ports are sent; 0: they are not */
	int64_t now_ms;      /* of the monotonic clock; the worker keeps it up to date */
};

/* Fills content, which has to stay where it is, from the directory root; files: descriptors that it may keep open. 0,
 * or -1 with errno; then, too, it has to be closed. */
int content_open(struct content *content, io_loop *loop, int root, const struct options *options, unsigned files);

/* When nobody waits for a job, nor sends anything of it, any more. */
void content_close(struct content *content);

/* Finishes what the threads have done, and resumes who waited; after each io_wait(). */
static inline void content_collect(struct content *content) {
	jobs_collect(content->compressing);
	jobs_collect(content->reading);
	jobs_collect(content->checking);
}

#endif
