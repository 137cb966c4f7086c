/* log_sink.h - writes whole lines to a file: after a write that tore one, nothing comes before its rest. For one
 * thread. */
#ifndef GATLING_LOG_LOG_SINK_H
#define GATLING_LOG_LOG_SINK_H

#include "gatling/log/log_file.h"

struct log_queue; /* log.h */

enum { LOG_REST_MAX = 256 * 1024 /* bytes of a line */ };

struct log_sink {
	struct log_file file;
	size_t rest_length;        /* 0: there is none */
	struct log_queue *rest_of; /* the queue of that line */
	char rest[LOG_REST_MAX];   /* the rest of a line whose start has been written */
};

/* Writes lines of a queue, each with its newline. Returns how many could not be written, with errno. */
unsigned long log_sink_write(struct log_sink *sink, struct log_queue *of, const char *text, size_t length);

/* Opens the file again (log_file_open()). Returns 0, or -1 with errno, and then keeps the old one. A line whose start
 * is in the old file is completed there, or lost: then *lost is its queue, else NULL. */
int log_sink_reopen(struct log_sink *sink, struct log_queue **lost);

/* Closes the file. Returns the queue of a line that is lost, or NULL. */
struct log_queue *log_sink_close(struct log_sink *sink);

#endif
