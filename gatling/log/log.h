/* log.h - the access log. Each worker collects lines, and one thread writes them, so that no worker waits for stdout or
 * the file (a slow disk, a full one, a pipe without a reader). */
#ifndef GATLING_LOG_LOG_H
#define GATLING_LOG_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/slice.h"
#include "gatling/log/log_file.h"

enum {
	/* Bytes of lines that a worker collects while the thread writes the last batch. A batch that is half full is handed
	 * over at once. */
	LOG_BATCH = 256 * 1024,
	LOG_DELAY_MS = 100, /* after which a line is handed to the thread at the latest */
	LOG_STOP_S = 1      /* after which log_stop() gives up */
};

struct log;       /* the thread with its file */
struct log_queue; /* the lines of a worker that the thread has not written */

/* Starts a thread that writes to the file, which log_stop() closes. The descriptor must be in the descriptor table of
 * the calling thread. json: dropped lines are reported as an object. Returns NULL with errno; then the caller still
 * owns the file. */
struct log *log_start(const struct log_file *file, bool json);

/* Makes the thread open the file again after it has written all lines that were handed over before. If that fails, it
 * reports an error and keeps the old file. Does nothing for standard output. */
void log_reopen(struct log *log);

/* Called after all workers have ended: writes the remaining lines, ends the thread, and frees the log and its queues.
 * If this takes longer than LOG_STOP_S, leaves the thread and the descriptor behind. NULL is allowed. */
void log_stop(struct log *log);

/* Returns a queue for one more worker, which log_stop() frees, or NULL without memory. */
struct log_queue *log_queue_new(struct log *log);

/* Appends a line, given without its newline. If there is no room, drops and counts the line; the log reports how many
 * lines were dropped as soon as it can be written again. now_ms is a time of the monotonic clock. */
void log_line(struct log_queue *queue, struct slice line, int64_t now_ms);

/* Appends a line, and hands it to the thread at once. Any thread may call this. It is for few lines, and not for a
 * queue that log_line() is called with. */
void log_say(struct log_queue *queue, struct slice line);

/* Returns how many lines were dropped since the start. */
unsigned long log_dropped(const struct log_queue *queue);

/* Returns the milliseconds until log_flush() has to be called: 0 now, -1 not at all. */
int log_due(const struct log_queue *queue, int64_t now_ms);

/* Hands the lines to the thread. If that is still busy with the last batch, they are due again later (log_due()). */
void log_flush(struct log_queue *queue, int64_t now_ms);

#endif
