/* history.c - see history.h. */
#include "gatling/status/history.h"

#include <stddef.h>
#include <stdlib.h>

enum { MINUTE = 60 };

static struct moment *place(struct moment *ring, unsigned size, unsigned n) { return &ring[n % size]; }

int history_open(struct history *h, unsigned workers) {
	h->workers = workers;
	h->of_worker = calloc((size_t)workers * HISTORY_MOMENTS, sizeof *h->of_worker);
	return h->of_worker ? 0 : -1;
}

void history_close(struct history *h) { free(h->of_worker); }

/* Returns the values of all workers at a moment of either ring. */
static struct worker_moment *workers_at(const struct history *h, const struct moment *m) {
	bool minute = m >= h->minute && m <= h->minute + HISTORY_MINUTES;
	size_t row = minute ? HISTORY_SECONDS + 1 + (size_t)(m - h->minute) : (size_t)(m - h->second);
	return h->of_worker + row * h->workers;
}

static void remember(struct history *h, struct moment *at, const struct moment *now,
					 const struct counters *const *worker) {
	struct worker_moment *of = workers_at(h, at);
	*at = *now;
	for (unsigned i = 0; i < h->workers; i++) {
		of[i].requests = counters_value(worker[i], COUNT_HTTP1) + counters_value(worker[i], COUNT_HTTP2) +
						 counters_value(worker[i], COUNT_HTTP3);
		of[i].cpu_ns = counters_value(worker[i], COUNT_CPU_NS);
	}
}

void history_add(struct history *h, int64_t now_ms, const struct counters *sum, const struct counters *const *worker) {
	const struct moment now = {.ms = now_ms, .sum = *sum};
	if (h->seconds % MINUTE == 0) remember(h, place(h->minute, HISTORY_MINUTES + 1, h->minutes++), &now, worker);
	remember(h, place(h->second, HISTORY_SECONDS + 1, h->seconds++), &now, worker);
}

/* Returns the moment `ago` before the last one in a ring, or the oldest that is kept, or NULL. added: how many were
 * added. */
static const struct moment *find_moment(const struct moment *ring, unsigned size, unsigned added, unsigned ago) {
	if (!added) return NULL;
	if (ago >= added) ago = added - 1;
	if (ago >= size) ago = size - 1;
	return &ring[(added - 1 - ago) % size];
}

const struct moment *history_second(const struct history *h, unsigned ago) {
	return find_moment(h->second, HISTORY_SECONDS + 1, h->seconds, ago);
}

const struct moment *history_minute(const struct history *h, unsigned ago) {
	return find_moment(h->minute, HISTORY_MINUTES + 1, h->minutes, ago);
}

struct worker_rates history_worker(const struct history *h, unsigned worker, const struct moment *from,
								   const struct moment *to) {
	const struct worker_moment *before = &workers_at(h, from)[worker], *after = &workers_at(h, to)[worker];
	const double seconds = (double)(to->ms - from->ms) / 1000;
	if (seconds <= 0) return (struct worker_rates){0};
	return (struct worker_rates){.requests = (double)(after->requests - before->requests) / seconds,
								 .processors = (double)(after->cpu_ns - before->cpu_ns) / 1e9 / seconds};
}

double history_rate(const struct moment *from, const struct moment *to, enum value value) {
	if (to->ms <= from->ms) return 0;
	return (double)(to->sum.value[value] - from->sum.value[value]) * 1000 / (double)(to->ms - from->ms);
}

double history_quantile(const uint64_t from[TIMES], const uint64_t to[TIMES], double share) {
	uint64_t times[TIMES];
	for (unsigned i = 0; i < TIMES; i++) times[i] = to[i] - from[i];
	return (double)times_quantile(times, share) / 1e9;
}
