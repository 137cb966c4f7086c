/* error_log.h - writes the lines of base/notice.h to a file, each with its time and level:
 *     2026-11-23T13:20:48Z warning a worker has 180 of 200 connections, ...
 * While the server starts, they go to stderr, too. */
#ifndef GATLING_LOG_ERROR_LOG_H
#define GATLING_LOG_ERROR_LOG_H

#include "gatling/log/log.h"

struct error_log {
	struct log_file file;
	struct log *log; /* NULL until error_log_start() */
	struct log_queue *queue;
};

/* Makes lines go to e->file, which must be open. *e must stay where it is until error_log_stop(). */
void error_log_open(struct error_log *e);

/* Starts a thread that writes the lines from now on, so that no thread that serves clients waits for a slow disk.
 * Returns 0, or -1 with errno. */
int error_log_start(struct error_log *e);

/* Makes lines go to stderr again, writes those that wait, and closes the file. */
void error_log_stop(struct error_log *e);

#endif
