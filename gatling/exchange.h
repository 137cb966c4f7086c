/* exchange.h - answers under way: the batch that they leave in, and their lines for the log. Only a connection, or a
 * stream of HTTP/2, that has some owns one. */
#ifndef GATLING_EXCHANGE_H
#define GATLING_EXCHANGE_H

#include "gatling/access.h"
#include "gatling/worker.h"
#include "io/iob.h"

enum {
	SPARE_EXCHANGES = 256, /* kept for reuse */
	LOG_KEPT = 16 * 1024   /* bytes of log lines that each of them keeps room for */
};

struct exchange {
	iob *batch;
	int64_t started_ns;        /* when the requests were read */
	unsigned responses, files; /* and how many of them hold a file open */
	char *log;                 /* their lines, each with a newline, still without their ends */
	size_t log_length, log_size;
	struct exchange *next; /* among the spare ones */
};

/* An empty one. NULL: ENOMEM. */
struct exchange *exchange_take(struct worker *worker);

/* Drops what is in it. */
void exchange_reset(struct exchange *exchange);
void exchange_give_back(struct worker *worker, struct exchange *exchange);

/* Notes a request for the log, if there is one; for want of memory the line is lost, never the answer. */
void exchange_note(struct worker *worker, struct exchange *exchange, const struct access *access);

/* Logs the requests noted, with the seconds that they took until now. */
void exchange_log(struct worker *worker, const struct exchange *exchange);

/* Frees the spare ones of a worker. */
void exchange_free_spares(struct worker *worker);

#endif
