/* history.c - see history.h. */
#include "gatling/status/history.h"

#include <stddef.h>
#include <stdlib.h>

enum { MINUTE = 60 };

static struct moment *place(struct moment *ring, unsigned size, unsigned n) { return &ring[n % size]; }

int history_open(struct history *h, unsigned workers) {
	h->workers = workers;
	h->of_worker = calloc((size_t)workers * (HISTORY_SECONDS + 1), sizeof *h->of_worker);
	return h->of_worker ? 0 : -1;
}

void history_close(struct history *h) { free(h->of_worker); }

static struct worker_moment *worker_moments(const struct history *h, unsigned second) {
	return h->of_worker + (size_t)(second % (HISTORY_SECONDS + 1)) * h->workers;
}

void history_add(struct history *h, int64_t now_ms, const struct counters *sum, const struct counters *const *worker) {
	const struct moment now = {.ms = now_ms, .sum = *sum};
	for (unsigned i = 0; i < h->workers; i++)
		worker_moments(h, h->seconds)[i] = (struct worker_moment){.requests = counters_value(worker[i], COUNT_HTTP1) +
																			  counters_value(worker[i], COUNT_HTTP2),
																  .cpu_ns = counters_value(worker[i], COUNT_CPU_NS)};
	if (h->seconds % MINUTE == 0) *place(h->minute, HISTORY_MINUTES + 1, h->minutes++) = now;
	*place(h->second, HISTORY_SECONDS + 1, h->seconds++) = now;
}

/* ago: at most so many of `added` are kept in a ring of that size. */
static const struct moment *find(const struct moment *ring, unsigned size, unsigned added, unsigned ago) {
	if (!added) return NULL;
	if (ago >= added) ago = added - 1;
	if (ago >= size) ago = size - 1;
	return &ring[(added - 1 - ago) % size];
}

const struct moment *history_second(const struct history *h, unsigned ago) {
	return find(h->second, HISTORY_SECONDS + 1, h->seconds, ago);
}

const struct moment *history_minute(const struct history *h, unsigned ago) {
	return find(h->minute, HISTORY_MINUTES + 1, h->minutes, ago);
}

struct worker_rates history_worker(const struct history *h, unsigned worker, unsigned ago) {
	if (ago + 2 > h->seconds || ago >= HISTORY_SECONDS) return (struct worker_rates){0};
	const struct worker_moment *to = &worker_moments(h, h->seconds - 1 - ago)[worker];
	const struct worker_moment *from = &worker_moments(h, h->seconds - 2 - ago)[worker];
	const double seconds = (double)(history_second(h, ago)->ms - history_second(h, ago + 1)->ms) / 1000;
	if (seconds <= 0) return (struct worker_rates){0};
	return (struct worker_rates){.requests = (double)(to->requests - from->requests) / seconds,
								 .processors = (double)(to->cpu_ns - from->cpu_ns) / 1e9 / seconds};
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
