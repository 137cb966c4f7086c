/* job.h - what would hold up the loop of a worker is done by a thread beside it, one job after the other: compressing,
 * checking passwords, listing directories. Who needs the result waits for the job and then asks anew, as if for the
 * first time: what the job has found is in a cache by then. */
#ifndef GATLING_BASE_JOB_H
#define GATLING_BASE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "io/io.h"

enum { JOBS_MAX = 256 }; /* not yet finished, in one queue; more are refused */

struct waiter;

/* To be embedded in what the job works on. */
struct job {
	void (*run)(struct job *job, const atomic_bool *stop); /* in the thread; *stop: give up, nobody wants it any more */
	void (*finish)(struct job *job); /* back on the loop: keeps the result, if it ran, and frees the job */
	bool ran;                        /* false: the queue was freed, or all who waited had gone, before its turn came */
	atomic_bool unwanted;
	struct waiter *waiters;
	struct job *next;
};

/* To be embedded in what waits; all zero: waits for nothing. */
struct waiter {
	void (*resume)(struct waiter *waiter); /* the job has been finished and is gone */
	struct job *job;
	struct waiter *next, **link; /* link: NULL when it waits for nothing */
};

struct jobs;

/* A queue whose thread starts with the first job, so that it shares the descriptor table of the calling thread. NULL:
 * ENOMEM. */
struct jobs *jobs_new(io_loop *loop);

/* Stops, finishes all jobs, and frees the queue. Nobody may wait any more. NULL is allowed. */
void jobs_free(struct jobs *jobs);

/* Takes the job over. false: there are too many, or no thread; then it stays the caller's. */
bool jobs_add(struct jobs *jobs, struct job *job);

/* Finishes the jobs that have been done, and resumes who waited. To be called after each io_wait(): the thread ends it
 * with io_wake(). */
void jobs_collect(struct jobs *jobs);

void job_wait(struct job *job, struct waiter *waiter);
void waiter_leave(struct waiter *waiter); /* does nothing if it does not wait */

/* How many are not finished. */
unsigned jobs_count(const struct jobs *jobs);

#endif
