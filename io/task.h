/* task.h - a thread beside a loop for work that takes long: reads of cold files, compression, password hashes. Tasks
 * run one after the other, in the order in which they were added, and are handed back to the loop's thread when they
 * are done. All functions belong to the loop's thread. */
#ifndef GATLING_IO_TASK_H
#define GATLING_IO_TASK_H

#include <stdatomic.h>

#include "io/io.h"

/* To be embedded in what the task works on, which has to stay until the task is handed back. */
struct io_task {
	/* Called in the thread. It may give up early if *stop becomes true: the thread is to end. */
	void (*run)(struct io_task *task, const atomic_bool *stop);
	bool pending; /* neither begun nor withdrawn; guarded by the mutex of its thread */
	struct io_task *next, *previous;
};

/* A thread with its tasks. */
typedef struct io_tasks io_tasks;

/* A thread for the loop, which starts with the first task, so that it shares the descriptor table of the calling
 * thread. nice: how much the thread gives way to others (setpriority(2); Linux alone). NULL: ENOMEM. */
io_tasks *io_tasks_new(io_loop *loop, int nice);

/* Adds a task. false: the thread cannot be started. */
bool io_tasks_add(io_tasks *tasks, struct io_task *task);

/* Takes back a task that has not begun. false: it has; then it is handed back by io_tasks_done(). O(1). */
bool io_tasks_withdraw(io_tasks *tasks, struct io_task *task);

/* The next task that is done; NULL: there is none. To be called, until then, after an io_wait() with io_woken(): the
 * thread wakes the loop when a task is done. If the system does not let it, io_wait() notices within a second. */
struct io_task *io_tasks_done(io_tasks *tasks);

/* Ends the thread, after the task that runs. The tasks that are done or have not begun (pending) are then handed back
 * by io_tasks_done(), none of them run any more. */
void io_tasks_stop(io_tasks *tasks);

/* Frees a stopped thread that has no tasks left. NULL is allowed. */
void io_tasks_free(io_tasks *tasks);

#endif
