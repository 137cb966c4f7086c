/* trend.c - see trend.h. */
#include "bench/httpbench/statistics/trend.h"

#include <stdlib.h>
#include <string.h>

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* Makes one entry of each two. */
static void halve(struct trend *t) {
	for (unsigned i = 0; i < TREND_MAX / 2; i++) t->least_ns[i] = lesser(t->least_ns[2 * i], t->least_ns[2 * i + 1]);
	t->count = TREND_MAX / 2;
	t->width *= 2;
}

void trend_add(struct trend *t, int64_t least_ns) {
	if (!t->width) t->width = 1;
	t->part_ns = t->part ? lesser(t->part_ns, least_ns) : least_ns;
	if (++t->part < t->width) return;
	t->part = 0;
	t->least_ns[t->count++] = t->part_ns;
	if (t->count == TREND_MAX) halve(t);
}

static int in_order(const void *a, const void *b) {
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t median(const int64_t *value, unsigned count) {
	int64_t sorted[TREND_MAX];
	memcpy(sorted, value, count * sizeof *value);
	qsort(sorted, count, sizeof *sorted, in_order);
	return sorted[count / 2];
}

/* Returns Kendall's tau in per cent. */
static int rank_correlation(const struct trend *t) {
	int sum = 0, pairs = 0;
	for (unsigned i = 0; i < t->count; i++)
		for (unsigned k = i + 1; k < t->count; k++, pairs++) sum += in_order(&t->least_ns[k], &t->least_ns[i]);
	return 100 * sum / pairs;
}

bool trend_grows(const struct trend *t, double per_s, int64_t *first_ns, int64_t *last_ns) {
	const unsigned quarter = (t->count + 3) / 4;
	if (t->count < TREND_MIN) return false;
	*first_ns = median(t->least_ns, quarter);
	*last_ns = median(t->least_ns + t->count - quarter, quarter);
	return 2 * *last_ns >= 3 * *first_ns && (double)(*last_ns - *first_ns) * per_s / 1e9 >= TREND_WAITING &&
		   rank_correlation(t) >= TREND_PERCENT;
}
