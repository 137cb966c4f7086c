/* exchange.c - see exchange.h. */
#include "gatling/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gatling/owfat.h"

struct exchange *exchange_take(struct worker *w) {
	struct exchange *x = w->spare;
	if (x) {
		w->spare = x->next;
		w->spares--;
	} else {
		x = calloc(1, sizeof *x);
		if (x && !(x->batch = iob_new())) {
			free(x);
			x = NULL;
		}
		if (!x) return NULL;
	}
	x->started_ns = io_now_ns(w->loop);
	return x;
}

static void exchange_free(struct exchange *x) {
	iob_free(x->batch);
	free(x->log);
	free(x);
}

void exchange_reset(struct exchange *x) {
	iob_reset(x->batch);
	x->responses = x->files = 0;
	x->log_length = 0;
}

void exchange_give_back(struct worker *w, struct exchange *x) {
	if (w->spares == SPARE_EXCHANGES) {
		exchange_free(x);
		return;
	}
	exchange_reset(x);
	if (x->log_size > LOG_KEPT) {
		free(x->log);
		x->log = NULL;
		x->log_size = 0;
	}
	x->next = w->spare;
	w->spare = x;
	w->spares++;
}

void exchange_free_spares(struct worker *w) {
	for (struct exchange *x; (x = w->spare);) {
		w->spare = x->next;
		exchange_free(x);
	}
	w->spares = 0;
}

void exchange_note(struct worker *w, struct exchange *x, const struct peer *peer, struct slice request_line, int status,
				   uint64_t bytes) {
	char line[ACCESS_LINE_MAX];
	if (!w->log) return;
	size_t n = access_format(line, peer, w->log_date, request_line, status, bytes);
	line[n++] = '\n';
	if (x->log_size - x->log_length < n) {
		size_t size = 2 * x->log_size + n;
		char *log = realloc(x->log, size);
		if (!log) return;
		x->log = log;
		x->log_size = size;
	}
	memcpy(x->log + x->log_length, line, n);
	x->log_length += n;
}

void exchange_log(struct worker *w, const struct exchange *x) {
	struct timespec now;
	char line[ACCESS_LINE_MAX + 32];
	if (!x->log_length) return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - x->started_ns;
	for (size_t at = 0; at < x->log_length;) {
		const char *end = memchr(x->log + at, '\n', x->log_length - at);
		size_t n = (size_t)(end - (x->log + at));
		memcpy(line, x->log + at, n);
		at += n + 1;
		line[n++] = ' ';
		n += fmt_ulonglong(line + n, (unsigned long long)ns / 1000000000);
		line[n++] = '.';
		for (int64_t unit = 100000; unit; unit /= 10) line[n++] = (char)('0' + ns / 1000 / unit % 10);
		log_line(w->log, line, n, io_now(w->loop));
	}
}
