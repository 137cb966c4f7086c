/* permuted.c - see permuted.h. */
#include "bench/httpbench/statistics/permuted.h"

#include <math.h>
#include <stdlib.h>

#include "bench/usage.h"

/* Returns the logarithm of a percentile of some sections; INFINITY if it falls among requests that failed. sum: room.
 */
static double percentile_of(const struct histogram *const *section, unsigned sections, double percentile,
							struct histogram *sum) {
	histogram_reset(sum);
	for (unsigned i = 0; i < sections; i++) histogram_add(sum, section[i]);
	const int64_t ns = histogram_percentile(sum, percentile);
	return ns > 0 ? log((double)ns) : ns == 0 ? 0 : INFINITY;
}

/* Returns the logarithm of the ratio of the last b sections to the first a; 0 if neither percentile is known. */
static double ratio_of(const struct histogram *const *section, unsigned a, unsigned b, double percentile,
					   struct histogram *sum) {
	const double first = percentile_of(section, a, percentile, sum);
	const double second = percentile_of(section + a, b, percentile, sum);
	return isinf(first) && isinf(second) ? 0 : second - first;
}

static void add_scaled(struct histogram *to, const struct histogram *from, double factor) {
	to->censored = from->censored;
	const unsigned last = from->samples ? histogram_index(from->most) : 0;
	for (unsigned i = from->samples ? histogram_index(from->least) : 1; i <= last; i++)
		histogram_record_at(to, histogram_index((int64_t)((double)histogram_highest(i) * factor)), from->count[i]);
}

static void shuffle(const struct histogram **section, unsigned count, unsigned short state[3]) {
	for (unsigned i = count; i > 1; i--) {
		const unsigned j = (unsigned)((double)i * erand48(state));
		const struct histogram *const kept = section[i - 1];
		section[i - 1] = section[j];
		section[j] = kept;
	}
}

struct permuted permuted_percentile(const struct histogram *a, unsigned a_sections, const struct histogram *b,
									unsigned b_sections, double percentile, double factor) {
	const unsigned all = a_sections + b_sections;
	struct histogram *scaled = calloc(a_sections + 1, sizeof *scaled), *sum = scaled + a_sections;
	const struct histogram **section = calloc(all, sizeof(const struct histogram *));
	if (!scaled || !section) usage_refuse("no memory for the logs");
	for (unsigned i = 0; i < a_sections; i++) add_scaled(&scaled[i], &a[i], factor);
	for (unsigned i = 0; i < all; i++) section[i] = i < a_sections ? &scaled[i] : &b[i - a_sections];
	const double seen = ratio_of(section, a_sections, b_sections, percentile, sum);
	unsigned above = 1, below = 1; /* what was seen is one of the ways */
	unsigned short state[3] = {1, 2, 3};
	for (int i = 0; i < PERMUTED_TIMES; i++) {
		shuffle(section, all, state);
		const double ratio = ratio_of(section, a_sections, b_sections, percentile, sum);
		above += ratio >= seen;
		below += ratio <= seen;
	}
	free(scaled);
	free(section);
	return (struct permuted){.above = (double)above / (PERMUTED_TIMES + 1),
							 .below = (double)below / (PERMUTED_TIMES + 1)};
}
