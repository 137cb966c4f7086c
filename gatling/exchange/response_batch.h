/* response_batch.h - responses under way: the batch that they are sent in, and what is logged of their requests. A
 * connection or an HTTP/2 stream owns one only while it has responses to send. */
#ifndef GATLING_EXCHANGE_RESPONSE_BATCH_H
#define GATLING_EXCHANGE_RESPONSE_BATCH_H

#include "gatling/client/arrival.h"
#include "gatling/log/access.h"
#include "gatling/log/log.h"
#include "gatling/log/log_sites.h"
#include "gatling/status/counters.h"
#include "io/iob.h"

enum {
	BATCHES_SPARE = 256,        /* of each size, kept for reuse */
	BATCH_SMALL_MAX = 2 * 1024, /* bytes of memory that a small one takes */
	BATCH_LINES_KEPT = 4 * 1024 /* bytes for the log that a large one keeps room for */
};

/* Connections take large batches, which have room for many responses; streams small ones, since a client may have many
 * of them wait. Both grow as is needed. */
enum batch_size { BATCH_SMALL, BATCH_LARGE, BATCH_SIZES };

struct response_batch {
	iob *iob;
	int64_t started_ns;        /* when the requests were read */
	unsigned responses, files; /* and how many of them hold a file open */
	uint8_t sampled;           /* its times are counted, each so often; 0: they are not */
	bool begun;                /* its first byte has been given to the kernel */
	char *lines;               /* each is its length (uint32_t), the line without its end, and room for that */
	size_t lines_length, lines_size;
	struct response_batch *next; /* among the spare ones */
};

/* What a worker's batches share: those kept for reuse, and how their requests are logged. */
struct batch_pool {
	const int64_t *now_ns;   /* the monotonic clock, as of this turn of the loop */
	struct log_queue *queue; /* NULL: no log */
	struct access_style style;
	bool by_site;  /* a line begins with its site, as log_sites.h has it */
	time_t second; /* since 1970: the wall clock, as the lines say it */
	/* The line that was written last, and the batch that has room for it, until it is logged or copied there: most
	 * responses are logged before there is another one. NULL: none. */
	char line[LOG_SITE_MAX + 1 + ACCESS_LINE_MAX + ACCESS_END_MAX];
	size_t line_length;
	struct response_batch *line_of;
	struct response_batch *spare[BATCH_SIZES];
	unsigned spares[BATCH_SIZES];
};

/* Sets the time of the lines that are logged from now on. */
void batch_pool_set_time(struct batch_pool *pool, time_t now);

/* Takes an empty batch, from the pool if it has one, unless *batch is not NULL. Returns false without memory. */
bool response_batch_take(struct batch_pool *pool, enum batch_size size, struct response_batch **batch);

/* Empties the batch. */
void response_batch_reset(struct batch_pool *pool, struct response_batch *batch);

/* Gives a batch back, and sets *batch to NULL. */
void response_batch_return(struct batch_pool *pool, struct response_batch **batch);

/* Returns the bytes of memory that the batch takes. */
size_t response_batch_memory(const struct response_batch *batch);

/* Notes a response and its request (NULL: it was malformed) for the log, if there is a log. Without memory the line is
 * lost, never the response. */
void response_batch_note(struct batch_pool *pool, struct response_batch *batch, const struct arrival *arrival,
						 const struct request *request, struct slice user, int status, uint64_t bytes);

/* Counts the time that the responses have taken until now: when bytes of them were given to the kernel, and with done,
 * all of them. To be called for a batch that is sampled. */
void response_batch_time(struct response_batch *batch, bool done);

/* Logs a request (NULL: it was malformed) at once, without a batch, if there is a log. started_ns: as in a batch.
 * upstream: where the request was passed on to, or NULL. */
void batch_pool_log(struct batch_pool *pool, int64_t started_ns, const struct arrival *arrival,
					const struct request *request, struct slice user, int status, uint64_t bytes,
					const struct access_upstream *upstream);

/* Ends a batch: logs the requests that were noted, with the time that they have taken, if there is a log. Then gives
 * the batch back, as response_batch_return(). */
void response_batch_end(struct batch_pool *pool, struct response_batch **batch);

/* Frees the batches that are kept for reuse. */
void response_batch_free_spares(struct batch_pool *pool);

#endif
