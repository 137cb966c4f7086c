/* history.c - see history.h. */
#include "gatling/status/history.h"

#include <stddef.h>

enum { MINUTE = 60 };

static struct moment *place(struct moment *ring, unsigned size, unsigned n) { return &ring[n % size]; }

void history_add(struct history *h, int64_t now_ms, const struct counters *sum) {
	const struct moment now = {.ms = now_ms, .sum = *sum};
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

double history_rate(const struct moment *from, const struct moment *to, enum value value) {
	if (to->ms <= from->ms) return 0;
	return (double)(to->sum.value[value] - from->sum.value[value]) * 1000 / (double)(to->ms - from->ms);
}

double history_quantile(const uint64_t from[TIMES], const uint64_t to[TIMES], double share) {
	uint64_t times[TIMES];
	for (unsigned i = 0; i < TIMES; i++) times[i] = to[i] - from[i];
	return (double)times_quantile(times, share) / 1e9;
}
