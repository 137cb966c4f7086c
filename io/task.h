/* task.h - threads beside a loop for work that takes long: reads from disks, compression, password hashes. Tasks begin
 * in the order in which they were added, one after the other in each thread, and are handed back to the loop when they
 * are done. Only the loop's thread may call these functions, except for the last three. */
#ifndef GATLING_IO_TASK_H
#define GATLING_IO_TASK_H

#include <stdatomic.h>

#include "io/io.h"

/* Embedded in the structure that the task works on, which must stay valid until the task is handed back. */
struct io_task {
	/* Called in the thread. It may return early when *stop becomes true, since the thread is about to end. */
	void (*run)(struct io_task *task, const atomic_bool *stop);
	bool again;   /* run() sets it to be called again, after those that wait: a long task goes on in turn with others */
	bool pending; /* waits to be run, and not withdrawn; guarded by the mutex of struct io_tasks */
	struct io_task *next, *previous;
};

enum { IO_TASKS_THREADS_MAX = 16 };

/* Threads with their tasks. */
typedef struct io_tasks io_tasks;

/* Returns up to so many threads for the loop, or NULL (ENOMEM). One starts with a task for which none is idle, in the
 * caller's thread, and so shares that one's descriptor table. nice: their priority, as of setpriority(2) (only on
 * Linux). */
io_tasks *io_tasks_new(io_loop *loop, int nice, unsigned threads);

/* Adds a task. Returns false, with errno, if no thread can be started. */
bool io_tasks_add(io_tasks *tasks, struct io_task *task);

/* Withdraws a task that waits to be run. Returns false if it does not; then io_tasks_done() hands it back. O(1). */
bool io_tasks_withdraw(io_tasks *tasks, struct io_task *task);

/* Returns the next task that is done, or NULL. Call it until it returns NULL after each io_wait() that io_woken() says
 * was woken: the thread wakes the loop when a task is done. If the system refuses that, io_wait() returns within a
 * second. */
struct io_task *io_tasks_done(io_tasks *tasks);

/* Ends the threads after the tasks that they run. io_tasks_done() then hands back those that are done, and those that
 * wait to be run (pending), which will not. Returns false if tasks are still running after most_ms (-1: no limit): then
 * they and *tasks have to stay as they are until the process ends. */
bool io_tasks_stop(io_tasks *tasks, int most_ms);

/* Frees threads for which io_tasks_stop() returned true, and that have no tasks left; NULL is allowed. */
void io_tasks_free(io_tasks *tasks);

/* --- reads that nobody waits for go last, in all threads of the process --- */

enum {
	IO_READS_STUCK_MS = 1000
}; /* after which reads of which none has ended do not count any more, as on a hung disk */

/* Called in a thread when it begins to read something that a client waits for, and when it has read that. */
void io_read_begins(void);
void io_read_ends(void);

/* Returns true as soon as no such read is under way. Returns false if they are stuck, or *stop becomes true. */
bool io_reads_stand_back(const atomic_bool *stop);

#endif
