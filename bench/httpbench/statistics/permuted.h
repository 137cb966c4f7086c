/* permuted.h - how much two runs differ by chance: if they do not, it does not matter which sections of time belong to
 * which of them (Fisher, "The Design of Experiments", 1935). This holds for bursts and tails of any kind, of which a
 * few sections show too little for a variance. */
#ifndef BENCH_PERMUTED_H
#define BENCH_PERMUTED_H

#include "bench/httpbench/statistics/histogram.h"

enum { PERMUTED_TIMES = 999 };

/* The shares of random exchanges with which the percentile of b, compared to that of a, is at least, and at most, as
 * great as it is: the chance that a difference comes from the exchange alone. */
struct permuted {
	double above, below;
};

/* Exchanges the sections of a, whose durations count times factor, and of b, always in the same ways. Exits with a
 * message if there is no memory. */
struct permuted permuted_percentile(const struct histogram *a, unsigned a_sections, const struct histogram *b,
									unsigned b_sections, double percentile, double factor);

#endif
