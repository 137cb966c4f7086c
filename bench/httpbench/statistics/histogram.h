/* histogram.h - counts durations from 1 ns to 1 h with three significant digits, in constant memory: Gil Tene's high
 * dynamic range histogram, in the layout of the HdrHistogram libraries, so that their logs can hold it (hlog.h).
 *
 * Some samples have no value, since the request timed out or failed. They are counted as censored and rank above all
 * others; a percentile that falls among them is not known. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_DIGITS = 3,
	HISTOGRAM_HALF = 1024, /* counts in a bucket, whose values have the same exponent: half of 2 * 10^3, rounded up to a
							  power of two */
	HISTOGRAM_BUCKETS = 32,
	HISTOGRAM_COUNTS = (HISTOGRAM_BUCKETS + 1) * HISTOGRAM_HALF
};
#define HISTOGRAM_LOWEST 1
#define HISTOGRAM_HIGHEST INT64_C(3600000000000) /* ns; longer durations count as this */

struct histogram {
	uint64_t count[HISTOGRAM_COUNTS];
	uint64_t samples, censored;
	int64_t least, most; /* ns; undefined without samples */
};

/* Empties h; one of zeros is empty, too. O(range in use). */
void histogram_reset(struct histogram *h);

/* Records a duration; a negative one counts as 0. */
void histogram_record(struct histogram *h, int64_t ns);
void histogram_censor(struct histogram *h);

/* Records samples of the durations that share the count with that index. */
void histogram_record_at(struct histogram *h, unsigned index, uint64_t samples);

/* Adds the counts of from. The result is exact: it does not matter whether samples are recorded or added first. */
void histogram_add(struct histogram *h, const struct histogram *from);

/* Returns a percentile (0 to 100) in ns: the shortest duration that at least this share of all samples do not exceed,
 * rounded up to the longest one that shares its count. Returns -1 if that sample is censored, or there are none. */
int64_t histogram_percentile(const struct histogram *h, double percentile);

/* Returns how long the censored samples took at least, if each of them took at least timeout_ns. */
int64_t histogram_beyond(const struct histogram *h, int64_t timeout_ns);

/* Return the mean and the standard deviation of the samples that have a value, or 0 if there are none. */
double histogram_mean(const struct histogram *h);
double histogram_deviation(const struct histogram *h);

/* Return the index of the count for a duration, and the shortest and the longest duration that share a count. */
unsigned histogram_index(int64_t ns);
int64_t histogram_lowest(unsigned index);
int64_t histogram_highest(unsigned index);

#endif
