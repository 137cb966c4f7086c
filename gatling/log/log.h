/* log.h - the access log: each worker fills batches of lines, one thread writes them, so that nothing that stdout or
 * the file may do (a slow disk, a full one, a pipe that nobody reads) ever stops a worker. */
#ifndef GATLING_LOG_LOG_H
#define GATLING_LOG_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/slice.h"
#include "gatling/log/log_file.h"

enum {
	LOG_BATCH = 256 * 1024, /* bytes of lines that a worker collects while its last ones are being written */
	LOG_DELAY_MS = 100      /* after which a line is handed to the writing thread at the latest */
};

struct log;       /* the writing thread */
struct log_lines; /* what one worker has collected */

/* Starts the thread that writes to a file, which log_stop() will close, of the calling thread's table of descriptors.
 * json: what is said about dropped lines is an object. NULL with errno: the file stays the caller's. */
struct log *log_start(const struct log_file *file, bool json);

/* Has the thread open the file again, after what has been handed to it by now is written; nothing on stdout. If that
 * fails it says so on stderr and goes on with the old one. */
void log_reopen(struct log *log);

/* Writes what it has, ends the thread and frees the log with its log_lines. After all workers have ended.
 * Gives up on a descriptor that takes nothing for LOG_STOP_S: that thread is left behind, with the descriptor. */
enum { LOG_STOP_S = 1 };
void log_stop(struct log *log);

/* A place for one worker's lines, freed by log_stop(). NULL: ENOMEM. */
struct log_lines *log_lines_new(struct log *log);

/* Appends a line, in two parts and without its newline; or drops it and counts, when there is no room. What was
 * dropped, for this or because it could not be written, is said in the log as soon as lines can be written again.
 * now_ms is of the monotonic clock. */
void log_line(struct log_lines *lines, struct slice start, struct slice end, int64_t now_ms);

/* Milliseconds until log_flush() has to be called: 0 now, -1 not at all. */
int log_due(const struct log_lines *lines, int64_t now_ms);

/* Hands the lines to the writing thread, unless that is still busy with the last ones: then it is due again later. */
void log_flush(struct log_lines *lines, int64_t now_ms);

#endif
