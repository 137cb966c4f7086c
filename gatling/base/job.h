/* job.h - work that would hold up a worker's loop, such as hashes of files, compression, checks of passwords and
 * listings of directories, and the requests that wait for its results. Threads beside the loop do one job after the
 * other (io/task.h). When a job is finished, its waiters start again from the beginning, and find the result in a
 * cache. */
#ifndef GATLING_BASE_JOB_H
#define GATLING_BASE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/task.h"

enum { JOBS_MAX = 256 }; /* unfinished jobs in a queue; more are refused */

struct waiter;

/* Embedded in the structure that the job works on. */
struct job {
	struct io_task task;
	/* Does the work, in the thread. It may give up when *stop becomes true, since the queue is being freed. If it sets
	 * task.again, it is called again after the other jobs in the queue have had their turn. */
	void (*run)(struct job *job, const atomic_bool *stop);
	/* Called on the loop. Keeps the result, if the job ran, and frees the job. */
	void (*finish)(struct job *job);
	uint64_t prefetches;  /* hash of the path, if the job only reads a file into memory; otherwise 0 */
	bool background;      /* it reads for later: others go first (io_reads_stand_back()) */
	bool ran;             /* false: the queue was freed, or all waiters had left, before its first turn came */
	atomic_bool unwanted; /* all waiters have left */
	struct waiter *waiters;
};

/* Embedded in the structure that waits. All zero: it waits for nothing. */
struct waiter {
	void (*resume)(struct waiter *waiter); /* called when the job has been finished and freed */
	struct job *job;
	struct waiter *next, **link; /* link: NULL when it waits for nothing */
};

struct jobs;

/* Returns a queue with up to so many threads of its own, which start with the first jobs, or NULL without memory. nice:
 * as in io/task.h. */
struct jobs *jobs_new(io_loop *loop, int nice, unsigned threads);

/* Stops the threads, finishes all jobs and frees the queue. No waiter may be left. NULL is allowed. */
void jobs_free(struct jobs *jobs);

/* Does the same, but returns false if jobs are still running after most_ms, as on a hung file system: they, their queue
 * and what they use have to stay as they are until the process ends. */
bool jobs_stop(struct jobs *jobs, int most_ms);

/* Adds a job, which the queue then owns. Returns false, and the caller still owns the job, if there are JOBS_MAX or
 * there is no thread. */
bool jobs_add(struct jobs *jobs, struct job *job);

/* Finishes the jobs that are done, and resumes their waiters. Call it after each io_wait() with io_woken(), since the
 * thread wakes the loop when a job is done. */
void jobs_collect(struct jobs *jobs);

/* Begin to wait for a job, and stop waiting. */
void job_wait(struct job *job, struct waiter *waiter);
void waiter_leave(struct waiter *waiter); /* does nothing if it does not wait */

/* Finishes a job that is in no queue, and resumes its waiters. */
void job_finish(struct job *job);

/* Returns how many jobs are unfinished. */
unsigned jobs_count(const struct jobs *jobs);

#endif
