/* response_batch.c - see response_batch.h. */
#include "gatling/exchange/response_batch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void batch_pool_set_time(struct batch_pool *pool, time_t now) {
	pool->second = now;
	access_set_time(&pool->style, now);
}

int64_t batch_pool_now_ns(const struct batch_pool *pool) { return io_now_ns(pool->loop); }

struct response_batch *response_batch_take(struct batch_pool *pool) {
	struct response_batch *x = pool->spare;
	if (x) {
		pool->spare = x->next;
		pool->spares--;
	} else if (!(x = calloc(1, sizeof *x)) || !(x->iob = iob_new())) {
		free(x);
		return NULL;
	}
	x->started_ns = batch_pool_now_ns(pool);
	return x;
}

static void response_batch_free(struct response_batch *x) {
	iob_free(x->iob);
	free(x->lines);
	free(x);
}

void response_batch_reset(struct response_batch *x) {
	iob_reset(x->iob);
	x->responses = x->files = 0;
	x->sampled = 0;
	x->begun = false;
	x->lines_length = 0;
}

void response_batch_return(struct batch_pool *pool, struct response_batch *x) {
	if (pool->spares == BATCHES_SPARE) {
		response_batch_free(x);
		return;
	}
	response_batch_reset(x);
	if (x->lines_size > BATCH_LINES_KEPT) {
		free(x->lines);
		x->lines = NULL;
		x->lines_size = 0;
	}
	x->next = pool->spare;
	pool->spare = x;
	pool->spares++;
}

void response_batch_free_spares(struct batch_pool *pool) {
	for (struct response_batch *x; (x = pool->spare);) {
		pool->spare = x->next;
		response_batch_free(x);
	}
	pool->spares = 0;
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

/* Writes the line of a request to pool->line, without its end. Returns the bytes written. */
static size_t format_line(struct batch_pool *pool, const struct peer *peer, const struct request *request,
						  struct slice user, int status, uint64_t bytes, const struct access_upstream *upstream) {
	const struct access_upstream failed = {.address = request ? request->failed : (struct slice){0}};
	struct access a = {.peer = peer};
	if (request && pool->style.format != LOG_COMMON) a = access_of(peer, request);
	else if (request) a.line = request->line;
	a.user = user;
	a.status = status;
	a.bytes = bytes;
	a.upstream = failed.address.at ? &failed : upstream;
	return access_format(pool->line, &pool->style, &a);
}

void response_batch_note_logged(struct batch_pool *pool, struct response_batch *x, const struct peer *peer,
								const struct request *request, struct slice user, int status, uint64_t bytes) {
	uint32_t length = (uint32_t)format_line(pool, peer, request, user, status, bytes, NULL);
	if (!make_room(x, sizeof length + length)) return;
	char *at = x->lines + x->lines_length;
	memcpy(at, &length, sizeof length);
	memcpy(at + sizeof length, pool->line, length);
	x->lines_length += sizeof length + length;
}

void batch_pool_log(struct batch_pool *pool, int64_t started_ns, const struct peer *peer, const struct request *request,
					struct slice user, int status, uint64_t bytes, const struct access_upstream *upstream) {
	char text[ACCESS_END_MAX];
	if (!pool->queue) return;
	const size_t length = format_line(pool, peer, request, user, status, bytes, upstream);
	const struct slice line = {.at = pool->line, .length = length},
					   end = {.at = text, .length = access_end(text, pool->style.format, io_read_clock() - started_ns)};
	log_line(pool->queue, line, end, io_now(pool->loop));
}

void response_batch_log(struct batch_pool *pool, const struct response_batch *x) {
	char text[ACCESS_END_MAX];
	uint32_t length;
	if (!x->lines_length) return;
	struct slice end = {.at = text, .length = access_end(text, pool->style.format, io_read_clock() - x->started_ns)};
	for (const char *at = x->lines; at < x->lines + x->lines_length; at += sizeof length + length) {
		memcpy(&length, at, sizeof length);
		log_line(pool->queue, (struct slice){.at = at + sizeof length, .length = length}, end, io_now(pool->loop));
	}
}
