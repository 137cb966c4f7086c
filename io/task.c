/* task.c - see task.h. */
#include "io/task.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#ifdef __linux__
#include <sys/resource.h>
#endif

#include "io/internal.h"

struct list {
	struct io_task *first, *last;
};

struct io_tasks {
	io_loop *loop;
	int nice;
	unsigned threads, threads_max; /* those that were started */
	unsigned joined;               /* of these */
	pthread_t thread[IO_TASKS_THREADS_MAX];
	pthread_mutex_t mutex;
	pthread_cond_t changed, ended; /* ended: a thread is about to end */
	/* guarded by the mutex */
	struct list waiting, done;
	unsigned unfinished; /* tasks that wait or run */
	unsigned left;       /* threads that have ended, or are about to */
	bool stopping;
	/* for the tasks that run */
	atomic_bool stop;
};

static void append(struct list *list, struct io_task *task) {
	task->next = NULL;
	task->previous = list->last;
	if (list->last) list->last->next = task;
	else list->first = task;
	list->last = task;
}

static void remove_from(struct list *list, struct io_task *task) {
	if (task->previous) task->previous->next = task->next;
	else list->first = task->next;
	if (task->next) task->next->previous = task->previous;
	else list->last = task->previous;
}

static struct io_task *take_first(struct list *list) {
	struct io_task *task = list->first;
	if (task) remove_from(list, task);
	return task;
}

io_tasks *io_tasks_new(io_loop *loop, int nice, unsigned threads) {
	io_tasks *tasks = calloc(1, sizeof *tasks);
	if (!tasks) return NULL;
	tasks->loop = loop;
	tasks->nice = nice;
	tasks->threads_max = threads;
	pthread_mutex_init(&tasks->mutex, NULL);
	pthread_cond_init(&tasks->changed, NULL);
	pthread_cond_init(&tasks->ended, NULL);
	return tasks;
}

static void *task_thread(void *argument) {
	io_tasks *tasks = argument;
#ifdef __linux__
	if (tasks->nice) (void)setpriority(PRIO_PROCESS, 0, tasks->nice); /* of this thread alone */
#endif
	pthread_mutex_lock(&tasks->mutex);
	while (!tasks->stopping) {
		struct io_task *task = take_first(&tasks->waiting);
		if (!task) {
			pthread_cond_wait(&tasks->changed, &tasks->mutex);
			continue;
		}
		task->pending = task->again = false;
		pthread_mutex_unlock(&tasks->mutex);
		task->run(task, &tasks->stop);
		pthread_mutex_lock(&tasks->mutex);
		task->pending = task->again;
		append(task->again ? &tasks->waiting : &tasks->done, task);
		if (task->again) continue;
		tasks->unfinished--;
		io_wake(tasks->loop);
	}
	tasks->left++;
	pthread_cond_signal(&tasks->ended);
	pthread_mutex_unlock(&tasks->mutex);
	return NULL;
}

/* Starts a thread for one more task, if there may be none that is idle. Returns false, with errno, if there is none at
 * all. */
static bool start_thread(io_tasks *tasks) {
	pthread_mutex_lock(&tasks->mutex);
	const bool idle = tasks->unfinished < tasks->threads;
	pthread_mutex_unlock(&tasks->mutex);
	if (idle || tasks->threads == tasks->threads_max) return true;
	const int error = pthread_create(&tasks->thread[tasks->threads], NULL, task_thread, tasks);
	if (!error) tasks->threads++;
	errno = error;
	return tasks->threads;
}

bool io_tasks_add(io_tasks *tasks, struct io_task *task) {
	if (!start_thread(tasks)) return false;
	tasks->loop->tasks++;
	pthread_mutex_lock(&tasks->mutex);
	task->pending = true;
	tasks->unfinished++;
	append(&tasks->waiting, task);
	pthread_cond_signal(&tasks->changed);
	pthread_mutex_unlock(&tasks->mutex);
	return true;
}

bool io_tasks_withdraw(io_tasks *tasks, struct io_task *task) {
	pthread_mutex_lock(&tasks->mutex);
	bool pending = task->pending;
	if (pending) {
		remove_from(&tasks->waiting, task);
		tasks->unfinished--;
		tasks->loop->tasks--;
	}
	task->pending = false;
	pthread_mutex_unlock(&tasks->mutex);
	return pending;
}

struct io_task *io_tasks_done(io_tasks *tasks) {
	pthread_mutex_lock(&tasks->mutex);
	struct io_task *task = take_first(&tasks->done);
	if (!task && tasks->stopping) task = take_first(&tasks->waiting);
	if (task) tasks->loop->tasks--;
	pthread_mutex_unlock(&tasks->mutex);
	return task;
}

/* Waits until all threads are about to end. Returns false if some are not after most_ms (-1: no limit). The mutex must
 * be locked. */
static bool wait_for_end(io_tasks *tasks, int most_ms) {
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += most_ms / 1000;
	until.tv_nsec += most_ms % 1000 * (long)IO_NS_PER_MS;
	if (until.tv_nsec >= IO_NS_PER_S) {
		until.tv_sec++;
		until.tv_nsec -= IO_NS_PER_S;
	}
	int error = 0;
	while (tasks->left < tasks->threads && !error)
		error = most_ms == -1 ? pthread_cond_wait(&tasks->ended, &tasks->mutex)
							  : pthread_cond_timedwait(&tasks->ended, &tasks->mutex, &until);
	return tasks->left == tasks->threads;
}

bool io_tasks_stop(io_tasks *tasks, int most_ms) {
	atomic_store(&tasks->stop, true);
	pthread_mutex_lock(&tasks->mutex);
	tasks->stopping = true;
	pthread_cond_broadcast(&tasks->changed);
	const bool all = wait_for_end(tasks, most_ms);
	pthread_mutex_unlock(&tasks->mutex);
	/* a second call joins none again */
	for (; all && tasks->joined < tasks->threads; tasks->joined++) pthread_join(tasks->thread[tasks->joined], NULL);
	return all;
}

void io_tasks_free(io_tasks *tasks) {
	if (!tasks) return;
	pthread_mutex_destroy(&tasks->mutex);
	pthread_cond_destroy(&tasks->changed);
	pthread_cond_destroy(&tasks->ended);
	free(tasks);
}

/* --- reads that nobody waits for --- */

static atomic_uint reads_begun, reads_ended;

void io_read_begins(void) { atomic_fetch_add(&reads_begun, 1); }
void io_read_ends(void) { atomic_fetch_add(&reads_ended, 1); }

bool io_reads_stand_back(const atomic_bool *stop) {
	enum { PAUSE_MS = 1 };
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	unsigned last = atomic_load(&reads_ended);
	for (int paused_ms = 0; atomic_load(&reads_begun) != atomic_load(&reads_ended); paused_ms += PAUSE_MS) {
		const unsigned ended = atomic_load(&reads_ended);
		if (ended != last) paused_ms = 0;
		last = ended;
		if (paused_ms >= IO_READS_STUCK_MS || atomic_load(stop)) return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
