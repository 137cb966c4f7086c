/* exchange.c - see exchange.h. */
#include "gatling/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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

void exchange_note(struct worker *w, struct exchange *x, const struct access *access) {
	char line[ACCESS_LINE_MAX];
	if (!w->log) return;
	size_t n = access_format(line, w->options->log, w->log_date, access);
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
	char text[ACCESS_END_MAX];
	if (!x->log_length) return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - x->started_ns;
	struct slice end = {.at = text, .length = access_end(text, w->options->log, ns)};
	for (size_t at = 0; at < x->log_length;) {
		const char *newline = memchr(x->log + at, '\n', x->log_length - at);
		struct slice line = {.at = x->log + at, .length = (size_t)(newline - (x->log + at))};
		log_line(w->log, line, end, io_now(w->loop));
		at += line.length + 1;
	}
}
