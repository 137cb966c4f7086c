/* response_batch.h - answers under way: the batch that they leave in, and what is to be logged of them. Only a
 * connection, or a stream of HTTP/2, that has some owns one. */
#ifndef GATLING_SITE_RESPONSE_BATCH_H
#define GATLING_SITE_RESPONSE_BATCH_H

#include "gatling/log/access.h"
#include "gatling/log/log.h"
#include "io/iob.h"

enum {
	SPARE_RESPONSE_BATCHES = 256, /* kept for reuse */
	LOG_KEPT = 4 * 1024           /* bytes for the log that each of them keeps room for */
};

struct response_batch {
	iob *batch;
	int64_t started_ns;        /* when the requests were read */
	unsigned responses, files; /* and how many of them hold a file open */
	const struct peer *peer;   /* of the requests noted; the connection's, which outlives this */
	char *log;                 /* what is to be logged of each, as it came: escaped it may be six times as long */
	size_t log_length, log_size;
	struct response_batch *next; /* among the spare ones */
};

/* What a worker's batches share: those kept for reuse, and how their requests are logged. */
struct batch_pool {
	io_loop *loop;
	struct log_lines *log; /* NULL: no log */
	enum log_format format;
	time_t second; /* since 1970: the wall clock, as log_date says it */
	char log_date[ACCESS_DATE_MAX], log_text[ACCESS_LINE_MAX];
	struct response_batch *spare;
	unsigned spares;
};

/* Sets the time of the lines that are logged from now on. */
void batch_pool_set_time(struct batch_pool *pool, time_t now);

/* An empty one. NULL: ENOMEM. */
struct response_batch *response_batch_take(struct batch_pool *pool);

/* Drops what is in it. */
void response_batch_reset(struct response_batch *exchange);
void response_batch_return(struct batch_pool *pool, struct response_batch *exchange);

/* Bytes of memory that it takes. */
size_t response_batch_memory(const struct response_batch *exchange);

/* Notes a request (NULL: nothing was understood of one) and what answered it for the log, if there is one; for want of
 * memory the line is lost, never the answer. */
void response_batch_note(struct batch_pool *pool, struct response_batch *exchange, const struct peer *peer,
						 const struct request *request, struct slice user, int status, uint64_t bytes);

/* Logs the requests noted, with the seconds that they took until now. */
void response_batch_log(struct batch_pool *pool, const struct response_batch *exchange);

/* Frees the spare ones of a worker. */
void response_batch_free_spares(struct batch_pool *pool);

#endif
