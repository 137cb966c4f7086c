/* job.h - work that would hold up a worker's loop, and the requests that wait for its result: hashes of files,
 * compression, checks of passwords, listings of directories. A thread beside the loop does one job after the other
 * (io/task.h). When a job is finished, its waiters ask again, as if for the first time: the result is in a cache by
 * then. */
#ifndef GATLING_BASE_JOB_H
#define GATLING_BASE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/task.h"

enum { JOBS_MAX = 256 }; /* not yet finished, in one queue; more are refused */

struct waiter;

/* To be embedded in what the job works on. */
struct job {
	struct io_task task;
	/* Does the work, in the thread. *stop: give up, the queue is being freed. */
	void (*run)(struct job *job, const atomic_bool *stop);
	/* Keeps the result, if the job ran, and frees the job; on the loop. */
	void (*finish)(struct job *job);
	uint64_t fetches;     /* hash of the path if it only reads a file into memory; else 0 */
	bool ran;             /* false: the queue was freed, or all waiters had left, before its turn came */
	atomic_bool unwanted; /* all waiters have left */
	struct waiter *waiters;
};

/* To be embedded in what waits; all zero: it waits for nothing. */
struct waiter {
	void (*resume)(struct waiter *waiter); /* the job has been finished and is gone */
	struct job *job;
	struct waiter *next, **link; /* link: NULL when it waits for nothing */
};

struct jobs;

/* A queue with a thread of its own, which starts with the first job. NULL: ENOMEM. */
struct jobs *jobs_new(io_loop *loop);

/* Stops the thread, finishes all jobs and frees the queue. No waiter may be left. NULL is allowed. */
void jobs_free(struct jobs *jobs);

/* Takes the job over. false: there are too many, or no thread; then it stays the caller's. */
bool jobs_add(struct jobs *jobs, struct job *job);

/* Finishes the jobs that are done and resumes their waiters. To be called after an io_wait() with io_woken(), by which
 * the thread reports them. */
void jobs_collect(struct jobs *jobs);

void job_wait(struct job *job, struct waiter *waiter);
void waiter_leave(struct waiter *waiter); /* does nothing if it does not wait */

/* How many are not finished. */
unsigned jobs_count(const struct jobs *jobs);

#endif
