/* histogram.h - counts of durations, from 1 ns to 1 h with three significant digits, in constant memory: Gil Tene's
 * high dynamic range histogram, with the layout of the HdrHistogram libraries, so that their logs hold it (hlog.h).
 *
 * Some samples have no value: a request that timed out or failed. They are counted as censored, and rank above all
 * others: a percentile that falls among them is not known, and says so. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_DIGITS = 3,
	HISTOGRAM_HALF = 1024, /* counts in a bucket of values with the same exponent: 2 * 10^3 rounded up, halved */
	HISTOGRAM_BUCKETS = 32,
	HISTOGRAM_COUNTS = (HISTOGRAM_BUCKETS + 1) * HISTOGRAM_HALF
};
#define HISTOGRAM_LOWEST 1
#define HISTOGRAM_HIGHEST INT64_C(3600000000000) /* ns; what is longer counts as this */

struct histogram {
	uint64_t count[HISTOGRAM_COUNTS];
	uint64_t samples, censored;
	int64_t least, most; /* ns; undefined without samples */
};

/* Empties it; an all-zero one is empty, too. O(range in use). */
void histogram_reset(struct histogram *h);

/* A duration below 1 ns counts as 0. */
void histogram_record(struct histogram *h, int64_t ns);
void histogram_censor(struct histogram *h);

/* Records samples durations that share a place. */
void histogram_record_at(struct histogram *h, unsigned index, uint64_t samples);

/* Adds what `from` holds. Exact: merging and recording commute. */
void histogram_add(struct histogram *h, const struct histogram *from);

/* Returns a percentile (0 to 100) in ns: the shortest duration that at least so many of all samples do not exceed, as
 * the longest that shares its place. -1: the sample is censored, or there is none. */
int64_t histogram_percentile(const struct histogram *h, double percentile);

/* Returns what the censored samples took at least, if each took as long as the timeout. */
int64_t histogram_beyond(const struct histogram *h, int64_t timeout_ns);

/* Mean and standard deviation of the samples that have a value; 0 if there is none. */
double histogram_mean(const struct histogram *h);
double histogram_deviation(const struct histogram *h);

/* The place of a duration, and the shortest and the longest duration that share it. */
unsigned histogram_index(int64_t ns);
int64_t histogram_lowest(unsigned index);
int64_t histogram_highest(unsigned index);

#endif
