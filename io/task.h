/* task.h - a thread beside a loop for work that takes long: reads from disks, compression, password hashes. Tasks run
 * one after the other, in the order in which they were added, and are handed back to the loop when they are done. Only
 * the loop's thread may call these functions. */
#ifndef GATLING_IO_TASK_H
#define GATLING_IO_TASK_H

#include <stdatomic.h>

#include "io/io.h"

/* Embedded in the structure that the task works on, which must stay valid until the task is handed back. */
struct io_task {
	/* Called in the thread. It may return early when *stop becomes true, since the thread is about to end. */
	void (*run)(struct io_task *task, const atomic_bool *stop);
	bool pending; /* neither begun nor withdrawn; guarded by the mutex of struct io_tasks */
	struct io_task *next, *previous;
};

/* A thread with its tasks. */
typedef struct io_tasks io_tasks;

/* Returns a thread for the loop, or NULL (ENOMEM). It starts with the first task, in the caller's thread, and so shares
 * that one's descriptor table. nice: its priority, as of setpriority(2) (only on Linux). */
io_tasks *io_tasks_new(io_loop *loop, int nice);

/* Adds a task. Returns false if the thread cannot be started. */
bool io_tasks_add(io_tasks *tasks, struct io_task *task);

/* Withdraws a task that has not begun. Returns false if it has; then io_tasks_done() hands it back. O(1). */
bool io_tasks_withdraw(io_tasks *tasks, struct io_task *task);

/* Returns the next task that is done, or NULL. Call it until it returns NULL after each io_wait() that io_woken() says
 * was woken: the thread wakes the loop when a task is done. If the system refuses that, io_wait() returns within a
 * second. */
struct io_task *io_tasks_done(io_tasks *tasks);

/* Ends the thread after the task that runs. io_tasks_done() then hands back those that are done, and those that have
 * not begun (pending), which will not run. */
void io_tasks_stop(io_tasks *tasks);

/* Frees a stopped thread that has no tasks left; NULL is allowed. */
void io_tasks_free(io_tasks *tasks);

#endif
