/* task.c - see task.h. */
#include "io/task.h"

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
	bool started;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* guarded by the mutex */
	struct list waiting, done;
	bool stopping;
	/* for the task that runs */
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

io_tasks *io_tasks_new(io_loop *loop, int nice) {
	io_tasks *tasks = calloc(1, sizeof *tasks);
	if (!tasks) return NULL;
	tasks->loop = loop;
	tasks->nice = nice;
	pthread_mutex_init(&tasks->mutex, NULL);
	pthread_cond_init(&tasks->changed, NULL);
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
		if (!task->again) io_wake(tasks->loop);
	}
	pthread_mutex_unlock(&tasks->mutex);
	return NULL;
}

bool io_tasks_add(io_tasks *tasks, struct io_task *task) {
	if (!tasks->started && pthread_create(&tasks->thread, NULL, task_thread, tasks) != 0) return false;
	tasks->started = true;
	tasks->loop->tasks++;
	pthread_mutex_lock(&tasks->mutex);
	task->pending = true;
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

void io_tasks_stop(io_tasks *tasks) {
	pthread_mutex_lock(&tasks->mutex);
	tasks->stopping = true;
	pthread_cond_signal(&tasks->changed);
	pthread_mutex_unlock(&tasks->mutex);
	atomic_store(&tasks->stop, true);
	if (tasks->started) pthread_join(tasks->thread, NULL);
}

void io_tasks_free(io_tasks *tasks) {
	if (!tasks) return;
	pthread_mutex_destroy(&tasks->mutex);
	pthread_cond_destroy(&tasks->changed);
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
