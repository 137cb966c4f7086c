/* response_batch.c - see response_batch.h. */
#include "gatling/site/response_batch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void batch_pool_set_time(struct batch_pool *pool, time_t now) {
	pool->second = now;
	access_date(pool->log_date, pool->format, now);
}

int64_t batch_pool_now_ns(const struct batch_pool *pool) { return io_now_ns(pool->loop); }

struct response_batch *response_batch_take(struct batch_pool *pool) {
	struct response_batch *x = pool->spare;
	if (x) {
		pool->spare = x->next;
		pool->spares--;
	} else if (!(x = calloc(1, sizeof *x)) || !(x->batch = iob_new())) {
		free(x);
		return NULL;
	}
	x->started_ns = batch_pool_now_ns(pool);
	return x;
}

static void response_batch_free(struct response_batch *x) {
	iob_free(x->batch);
	free(x->log);
	free(x);
}

void response_batch_reset(struct response_batch *x) {
	iob_reset(x->batch);
	x->responses = x->files = 0;
	x->sampled = 0;
	x->begun = false;
	x->log_length = 0;
}

void response_batch_return(struct batch_pool *pool, struct response_batch *x) {
	if (pool->spares == BATCHES_SPARE) {
		response_batch_free(x);
		return;
	}
	response_batch_reset(x);
	if (x->log_size > BATCH_LOG_KEPT) {
		free(x->log);
		x->log = NULL;
		x->log_size = 0;
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

size_t response_batch_memory(const struct response_batch *x) { return sizeof *x + iob_memory(x->batch) + x->log_size; }

/* --- the log --- */

/* UTF8_REST: octets that may be missing of a character at the end of a text. */
enum { TEXTS = 5, UTF8_REST = 3 };

/* The head of a note; the texts of the entry follow. */
struct noted {
	time_t when;
	struct peer peer;
	struct access access;
};

/* Finds the texts of an entry. */
static void texts_of(struct access *a, struct slice **text) {
	struct slice *const all[TEXTS] = {&a->line, &a->user, &a->host, &a->referer, &a->user_agent};
	memcpy(text, all, sizeof all);
}

/* Cuts texts to as much as is logged. Returns the bytes of all. */
static size_t cut(struct slice **text) {
	static const size_t most[TEXTS] = {ACCESS_REQUEST_MAX, ACCESS_USER_MAX, ACCESS_FIELD_MAX, ACCESS_FIELD_MAX,
									   ACCESS_FIELD_MAX};
	size_t length = 0;
	for (int i = 0; i < TEXTS; length += text[i++]->length)
		if (text[i]->length > most[i] + UTF8_REST) text[i]->length = most[i] + UTF8_REST;
	return length;
}

static bool make_room(struct response_batch *x, size_t length) {
	if (x->log_size - x->log_length >= length) return true;
	size_t size = x->log_length ? 2 * x->log_size + length : length;
	char *log = realloc(x->log, size);
	if (!log) return false;
	x->log = log;
	x->log_size = size;
	return true;
}

void response_batch_note_logged(struct batch_pool *pool, struct response_batch *x, const struct peer *peer,
								const struct request *request, struct slice user, int status, uint64_t bytes) {
	struct slice *text[TEXTS];
	struct noted n = {.when = pool->second, .peer = *peer};
	if (request && pool->format != LOG_COMMON) n.access = access_of(NULL, request);
	else if (request) n.access = (struct access){.line = request->line, .understood = request->path.at};
	n.access.user = user;
	n.access.status = status;
	n.access.bytes = bytes;
	texts_of(&n.access, text);
	size_t length = sizeof n + cut(text);
	if (!make_room(x, length)) return;
	char *at = x->log + x->log_length;
	memcpy(at, &n, sizeof n);
	at += sizeof n;
	for (int i = 0; i < TEXTS; at += text[i++]->length)
		if (text[i]->length) memcpy(at, text[i]->at, text[i]->length);
	x->log_length += length;
}

/* Logs what was noted. Returns its length. */
static size_t log_one(struct batch_pool *pool, const char *noted, struct slice end) {
	struct noted n;
	struct slice *text[TEXTS];
	char date[ACCESS_DATE_MAX];
	const char *at = noted + sizeof n;
	memcpy(&n, noted, sizeof n);
	n.access.peer = &n.peer;
	texts_of(&n.access, text);
	for (int i = 0; i < TEXTS; at += text[i++]->length)
		if (text[i]->at) text[i]->at = at;
	if (n.when != pool->second) access_date(date, pool->format, n.when);
	struct slice line = {.at = pool->log_text};
	const char *when = n.when == pool->second ? pool->log_date : date;
	line.length = access_format(pool->log_text, pool->format, when, &n.access);
	log_line(pool->log, line, end, io_now(pool->loop));
	return (size_t)(at - noted);
}

void response_batch_log(struct batch_pool *pool, const struct response_batch *x) {
	char text[ACCESS_END_MAX];
	if (!x->log_length) return;
	struct slice end = {.at = text, .length = access_end(text, pool->format, io_read_clock() - x->started_ns)};
	for (size_t at = 0; at < x->log_length;) at += log_one(pool, x->log + at, end);
}
