/* log.h - the access log. Each worker collects lines, and one thread writes them: nothing that stdout or the file may
 * do (a slow disk, a full one, a pipe without a reader) stops a worker. */
#ifndef GATLING_LOG_LOG_H
#define GATLING_LOG_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/slice.h"
#include "gatling/log/log_file.h"

enum {
	LOG_BATCH = 256 * 1024, /* bytes of lines that a worker collects while the thread writes the last batch; half of
							   them are handed over at once */
	LOG_DELAY_MS = 100,     /* after which a line is handed to the thread at the latest */
	LOG_STOP_S = 1          /* after which log_stop() gives up */
};

struct log;       /* the thread */
struct log_queue; /* of a worker: lines that the thread has not written */

/* Starts a thread that writes to the file, which log_stop() closes. The descriptor must be in the table of the calling
 * thread. json: dropped lines are reported as an object. Returns NULL with errno: the file stays the caller's. */
struct log *log_start(const struct log_file *file, bool json);

/* Makes the thread open the file again after it has written all lines handed over before. If that fails, it prints a
 * line on stderr and keeps the old file. Does nothing on stdout. */
void log_reopen(struct log *log);

/* Writes the remaining lines, ends the thread and frees the log with its log_queue, after all workers have ended. If
 * the descriptor takes nothing for LOG_STOP_S, leaves the thread and the descriptor behind. NULL is allowed. */
void log_stop(struct log *log);

/* Returns the queue of one more worker, which log_stop() frees. NULL: ENOMEM. */
struct log_queue *log_queue_new(struct log *log);

/* Appends a line, given without its newline. Without room it drops and counts the line; the log says how many lines
 * were dropped as soon as it can be written again. now_ms is of the monotonic clock. */
void log_line(struct log_queue *queue, struct slice line, int64_t now_ms);

/* Appends a line, whichever thread calls it, and hands it to the thread at once: for few lines. Not for lines that
 * log_line() is called with, too. */
void log_say(struct log_queue *queue, struct slice line);

/* Returns how many lines were dropped since the start. */
unsigned long log_dropped(const struct log_queue *queue);

/* Returns the milliseconds until log_flush() has to be called: 0 now, -1 not at all. */
int log_due(const struct log_queue *queue, int64_t now_ms);

/* Hands the lines to the thread. If that is still busy with the last batch, they are due again later. */
void log_flush(struct log_queue *queue, int64_t now_ms);

#endif
