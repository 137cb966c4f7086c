/* response_batch.c - see response_batch.h. */
#include "gatling/exchange/response_batch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gatling/base/slice.h"

void batch_pool_set_time(struct batch_pool *pool, time_t now) {
	pool->second = now;
	access_set_time(&pool->style, now);
}

/* Takes a batch out of those that are kept. */
static struct response_batch *take_spare(struct batch_pool *pool, enum batch_size size) {
	struct response_batch *x = pool->spare[size];
	if (!x) return NULL;
	pool->spare[size] = x->next;
	pool->spares[size]--;
	return x;
}

bool response_batch_take(struct batch_pool *pool, enum batch_size size, struct response_batch **batch) {
	if (*batch) return true;
	struct response_batch *x = take_spare(pool, size);
	if (!x && size == BATCH_LARGE) x = take_spare(pool, BATCH_SMALL);
	if (!x && (!(x = calloc(1, sizeof *x)) || !(x->iob = iob_new()))) {
		free(x);
		return false;
	}
	x->started_ns = *pool->now_ns;
	*batch = x;
	return true;
}

static void response_batch_free(struct response_batch *x) {
	iob_free(x->iob);
	free(x->lines);
	free(x);
}

void response_batch_reset(struct batch_pool *pool, struct response_batch *x) {
	if (pool->line_of == x) pool->line_of = NULL;
	iob_reset(x->iob);
	x->responses = x->files = 0;
	x->sampled = 0;
	x->begun = false;
	x->lines_length = 0;
}

void response_batch_return(struct batch_pool *pool, struct response_batch **batch) {
	struct response_batch *x = *batch;
	*batch = NULL;
	response_batch_reset(pool, x);
	if (x->lines_size > BATCH_LINES_KEPT) {
		free(x->lines);
		x->lines = NULL;
		x->lines_size = 0;
	}
	const enum batch_size size = response_batch_memory(x) > BATCH_SMALL_MAX ? BATCH_LARGE : BATCH_SMALL;
	if (pool->spares[size] == BATCHES_SPARE) {
		response_batch_free(x);
		return;
	}
	x->next = pool->spare[size];
	pool->spare[size] = x;
	pool->spares[size]++;
}

void response_batch_free_spares(struct batch_pool *pool) {
	struct response_batch *x;
	while ((x = take_spare(pool, BATCH_SMALL)) || (x = take_spare(pool, BATCH_LARGE))) response_batch_free(x);
}

void response_batch_time(struct response_batch *x, bool done) {
	int64_t ns = io_read_clock() - x->started_ns;
	if (!x->begun) count_first_byte(ns, x->responses * x->sampled);
	if (done) count_duration(ns, x->responses * x->sampled);
	x->begun = true;
}

size_t response_batch_memory(const struct response_batch *x) { return sizeof *x + iob_memory(x->iob) + x->lines_size; }

/* --- the log --- */

static bool make_room(struct response_batch *x, size_t length) {
	if (x->lines_size - x->lines_length >= length) return true;
	size_t size = x->lines_length ? 2 * x->lines_size + length : length;
	char *grown = realloc(x->lines, size);
	if (!grown) return false;
	x->lines = grown;
	x->lines_size = size;
	return true;
}

/* What a line of this length takes in the batch. */
static size_t line_room(uint32_t length) { return sizeof length + length + ACCESS_END_MAX; }

/* Copies the line that was written last to its batch, which has room for it. */
static void keep_line(struct batch_pool *pool) {
	struct response_batch *x = pool->line_of;
	const uint32_t length = (uint32_t)pool->line_length;
	pool->line_of = NULL;
	char *at = x->lines + x->lines_length;
	memcpy(at, &length, sizeof length);
	memcpy(at + sizeof length, pool->line, length);
	x->lines_length += line_room(length);
}

/* Writes the name of a site, and a tab. Returns the bytes written. */
static size_t put_site(char *out, struct slice site) {
	if (site.length > LOG_SITE_MAX) site.length = 0;
	if (site.length) site.length--; /* its slash */
	return (size_t)(TEXT_JOIN(out, site, SLICE("\t")) - out);
}

/* Writes the line of a request to pool->line, without its end. Returns the bytes written. */
static size_t format_line(struct batch_pool *pool, const struct arrival *arrival, const struct request *request,
						  struct slice user, int status, uint64_t bytes, const struct access_upstream *upstream) {
	struct access_upstream failed;
	struct access a = {.peer = arrival->client};
	if (request && request->failed.at) {
		failed = (struct access_upstream){.address = request->failed};
		upstream = &failed;
	}
	if (request && pool->style.format != LOG_COMMON) a = access_of(arrival->client, request);
	else if (request) a.line = request->line;
	a.port = arrival->port;
	a.user = user;
	a.status = status;
	a.bytes = bytes;
	a.upstream = upstream;
	const size_t length = pool->by_site ? put_site(pool->line, arrival->site) : 0;
	return length + access_format(pool->line + length, &pool->style, &a);
}

void response_batch_note(struct batch_pool *pool, struct response_batch *x, const struct arrival *arrival,
						 const struct request *request, struct slice user, int status, uint64_t bytes) {
	if (!pool->queue) return;
	if (pool->line_of) keep_line(pool);
	pool->line_length = format_line(pool, arrival, request, user, status, bytes, NULL);
	if (make_room(x, line_room((uint32_t)pool->line_length))) pool->line_of = x;
}

/* Logs the line that was written last, of a request that has taken so long. */
static void log_last(struct batch_pool *pool, int64_t ns) {
	const size_t length = pool->line_length + access_end(pool->line + pool->line_length, pool->style.format, ns);
	pool->line_of = NULL;
	log_line(pool->queue, (struct slice){.at = pool->line, .length = length}, *pool->now_ns / 1000000);
}

/* Logs the lines in a batch, whose requests have taken so long. */
static void log_kept(struct batch_pool *pool, struct response_batch *x, int64_t ns) {
	char text[ACCESS_END_MAX];
	uint32_t length;
	const struct slice end = {.at = text, .length = access_end(text, pool->style.format, ns)};
	for (char *at = x->lines; at < x->lines + x->lines_length; at += line_room(length)) {
		memcpy(&length, at, sizeof length);
		char *line = at + sizeof length;
		(void)text_copy(line + length, end);
		log_line(pool->queue, (struct slice){.at = line, .length = length + end.length}, *pool->now_ns / 1000000);
	}
}

void response_batch_end(struct batch_pool *pool, struct response_batch **batch) {
	struct response_batch *x = *batch;
	const bool last = pool->line_of == x;
	const int64_t ns = last || x->lines_length ? io_read_clock() - x->started_ns : 0;
	if (x->lines_length) log_kept(pool, x, ns);
	if (last) log_last(pool, ns);
	response_batch_return(pool, batch);
}

void batch_pool_log(struct batch_pool *pool, int64_t started_ns, const struct arrival *arrival,
					const struct request *request, struct slice user, int status, uint64_t bytes,
					const struct access_upstream *upstream) {
	if (!pool->queue) return;
	if (pool->line_of) keep_line(pool);
	pool->line_length = format_line(pool, arrival, request, user, status, bytes, upstream);
	log_last(pool, io_read_clock() - started_ns);
}
