/* job.c - see job.h. */
#include "gatling/base/job.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
	struct job *first, **end;
};

struct jobs {
	io_loop *loop;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct queue asked, done; /* guarded by the mutex, as `stopping` */
	bool stopping, started;
	atomic_bool stop;     /* as the job that runs sees it */
	atomic_bool has_done; /* so that the loop need not take the mutex to see that there is nothing */
	unsigned count;       /* the loop's: not yet finished */
};

static void push(struct queue *q, struct job *job) {
	job->next = NULL;
	*q->end = job;
	q->end = &job->next;
}

static struct job *pop(struct queue *q) {
	struct job *job = q->first;
	if (job && !(q->first = job->next)) q->end = &q->first;
	return job;
}

struct jobs *jobs_new(io_loop *loop) {
	struct jobs *jobs = calloc(1, sizeof *jobs);
	if (!jobs) return NULL;
	jobs->loop = loop;
	jobs->asked.end = &jobs->asked.first;
	jobs->done.end = &jobs->done.first;
	pthread_mutex_init(&jobs->mutex, NULL);
	pthread_cond_init(&jobs->changed, NULL);
	return jobs;
}

static void *run(void *argument) {
	struct jobs *jobs = argument;
	pthread_mutex_lock(&jobs->mutex);
	while (!jobs->stopping) {
		struct job *job = pop(&jobs->asked);
		if (!job) {
			pthread_cond_wait(&jobs->changed, &jobs->mutex);
			continue;
		}
		pthread_mutex_unlock(&jobs->mutex);
		job->ran = !atomic_load(&job->unwanted);
		if (job->ran) job->run(job, &jobs->stop);
		pthread_mutex_lock(&jobs->mutex);
		push(&jobs->done, job);
		atomic_store(&jobs->has_done, true);
		io_wake(jobs->loop);
	}
	pthread_mutex_unlock(&jobs->mutex);
	return NULL;
}

bool jobs_add(struct jobs *jobs, struct job *job) {
	if (jobs->count == JOBS_MAX) return false;
	if (!jobs->started && pthread_create(&jobs->thread, NULL, run, jobs) != 0) return false;
	jobs->started = true;
	jobs->count++;
	pthread_mutex_lock(&jobs->mutex);
	push(&jobs->asked, job);
	pthread_cond_signal(&jobs->changed);
	pthread_mutex_unlock(&jobs->mutex);
	return true;
}

static void finish(struct jobs *jobs, struct job *job) {
	struct waiter *waiters = job->waiters;
	if (waiters) waiters->link = &waiters;
	for (struct waiter *w = waiters; w; w = w->next) w->job = NULL;
	job->finish(job);
	jobs->count--;
	for (struct waiter *w; (w = waiters);) { /* one may end another */
		waiter_leave(w);
		w->resume(w);
	}
}

/* Apart from jobs_collect(), which is called in each turn and has nothing to do. */
__attribute__((noinline)) static void collect(struct jobs *jobs) {
	while (atomic_exchange(&jobs->has_done, false)) {
		pthread_mutex_lock(&jobs->mutex);
		struct queue done = jobs->done;
		jobs->done = (struct queue){.end = &jobs->done.first};
		pthread_mutex_unlock(&jobs->mutex);
		if (!done.first) continue;
		for (struct job *job; (job = done.first);) {
			done.first = job->next;
			finish(jobs, job);
		}
	}
}

void jobs_collect(struct jobs *jobs) {
	if (atomic_load(&jobs->has_done)) collect(jobs);
}

void jobs_free(struct jobs *jobs) {
	if (!jobs) return;
	if (jobs->started) {
		pthread_mutex_lock(&jobs->mutex);
		jobs->stopping = true;
		atomic_store(&jobs->stop, true);
		pthread_cond_signal(&jobs->changed);
		pthread_mutex_unlock(&jobs->mutex);
		pthread_join(jobs->thread, NULL);
	}
	for (struct job *job; (job = pop(&jobs->done)) || (job = pop(&jobs->asked));) job->finish(job);
	pthread_mutex_destroy(&jobs->mutex);
	pthread_cond_destroy(&jobs->changed);
	free(jobs);
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
