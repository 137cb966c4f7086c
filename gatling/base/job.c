/* job.c - see job.h. */
#include "gatling/base/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/notice.h"

struct jobs {
	io_tasks *tasks;
	unsigned count; /* unfinished jobs */
};

struct jobs *jobs_new(io_loop *loop, int nice, unsigned threads) {
	struct jobs *jobs = calloc(1, sizeof *jobs);
	if (jobs && (jobs->tasks = io_tasks_new(loop, nice, threads))) return jobs;
	free(jobs);
	return NULL;
}

static void run_job(struct io_task *task, const atomic_bool *stop) {
	struct job *job = (struct job *)task;
	if (!job->ran) job->ran = !atomic_load(&job->unwanted);
	if (!job->ran) return;
	if (!job->background) io_read_begins();
	job->run(job, stop);
	if (!job->background) io_read_ends();
}

bool jobs_add(struct jobs *jobs, struct job *job) {
	static notice_time next;
	job->task.run = run_job;
	if (jobs->count == JOBS_MAX) return false;
	if (!io_tasks_add(jobs->tasks, &job->task)) {
		if (notice_due(&next))
			notice_line(LEVEL_ERROR,
						"cannot start a thread: %s: what takes one is answered with 503, or without its result (allow "
						"more tasks: pids.max, TasksMax, ulimit -u; or more memory)",
						strerror(errno));
		return false;
	}
	jobs->count++;
	return true;
}

void job_finish(struct job *job) {
	struct waiter *waiters = job->waiters;
	if (waiters) waiters->link = &waiters;
	for (struct waiter *w = waiters; w; w = w->next) w->job = NULL;
	job->finish(job);
	for (struct waiter *w; (w = waiters);) { /* resuming one may free another */
		waiter_leave(w);
		w->resume(w);
	}
}

void jobs_collect(struct jobs *jobs) {
	for (struct io_task *task; (task = io_tasks_done(jobs->tasks));) {
		jobs->count--;
		job_finish((struct job *)task);
	}
}

bool jobs_stop(struct jobs *jobs, int most_ms) {
	const bool all = io_tasks_stop(jobs->tasks, most_ms);
	jobs_collect(jobs);
	if (all) io_tasks_free(jobs->tasks);
	if (all) free(jobs);
	return all;
}

void jobs_free(struct jobs *jobs) {
	if (jobs) (void)jobs_stop(jobs, -1);
}

void job_wait(struct job *job, struct waiter *waiter) {
	waiter->next = job->waiters;
	if (waiter->next) waiter->next->link = &waiter->next;
	job->waiters = waiter;
	waiter->link = &job->waiters;
	waiter->job = job;
	atomic_store(&job->unwanted, false);
}

void waiter_leave(struct waiter *waiter) {
	if (!waiter->link) return;
	*waiter->link = waiter->next;
	if (waiter->next) waiter->next->link = waiter->link;
	waiter->link = NULL;
	if (waiter->job && !waiter->job->waiters) atomic_store(&waiter->job->unwanted, true);
}

unsigned jobs_count(const struct jobs *jobs) { return jobs->count; }
