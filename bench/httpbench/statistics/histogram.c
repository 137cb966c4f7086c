/* histogram.c - see histogram.h. Each of the first 2 * HISTOGRAM_HALF counts is for a single nanosecond. Each further
 * group of HISTOGRAM_HALF counts covers a range that is twice as wide as that of the group before. */
#include "bench/httpbench/statistics/histogram.h"

#include <math.h>
#include <string.h>

enum { SUB_BITS = 11 }; /* 2 * HISTOGRAM_HALF == 1 << SUB_BITS */

unsigned histogram_index(int64_t ns) {
	uint64_t value = ns < 0 ? 0 : ns > HISTOGRAM_HIGHEST ? (uint64_t)HISTOGRAM_HIGHEST : (uint64_t)ns;
	unsigned bucket = (unsigned)(64 - SUB_BITS - __builtin_clzll(value | ((1U << SUB_BITS) - 1)));
	return (bucket << (SUB_BITS - 1)) + (unsigned)(value >> bucket);
}

static unsigned bucket_of(unsigned index) { return index < 2 * HISTOGRAM_HALF ? 0 : index / HISTOGRAM_HALF - 1; }

int64_t histogram_lowest(unsigned index) {
	unsigned bucket = bucket_of(index);
	return (int64_t)(index - bucket * HISTOGRAM_HALF) << bucket;
}

int64_t histogram_highest(unsigned index) { return histogram_lowest(index) + ((int64_t)1 << bucket_of(index)) - 1; }

void histogram_reset(struct histogram *h) {
	if (h->samples) {
		unsigned first = histogram_index(h->least), last = histogram_index(h->most);
		memset(h->count + first, 0, (last - first + 1) * sizeof *h->count);
	}
	h->samples = h->censored = 0;
}

static void widen(struct histogram *h, int64_t least, int64_t most) {
	if (!h->samples || least < h->least) h->least = least;
	if (!h->samples || most > h->most) h->most = most;
}

void histogram_record(struct histogram *h, int64_t ns) {
	h->count[histogram_index(ns)]++;
	widen(h, ns, ns);
	h->samples++;
}

void histogram_record_at(struct histogram *h, unsigned index, uint64_t samples) {
	if (!samples) return;
	h->count[index] += samples;
	widen(h, histogram_lowest(index), histogram_lowest(index));
	h->samples += samples;
}

void histogram_censor(struct histogram *h) { h->censored++; }

void histogram_add(struct histogram *h, const struct histogram *from) {
	h->censored += from->censored;
	if (!from->samples) return;
	unsigned last = histogram_index(from->most);
	for (unsigned i = histogram_index(from->least); i <= last; i++) h->count[i] += from->count[i];
	widen(h, from->least, from->most);
	h->samples += from->samples;
}

int64_t histogram_percentile(const struct histogram *h, double percentile) {
	uint64_t all = h->samples + h->censored, seen = 0;
	/* rounded up, so that at least this share of the samples is within it; a product such as 99.9 * 1000 is not exact
	 */
	uint64_t rank = (uint64_t)ceil(percentile * (double)all / 100 * (1 - 1e-12));
	if (rank < 1) rank = 1;
	if (rank > h->samples) return -1;
	unsigned i = histogram_index(h->least);
	while ((seen += h->count[i]) < rank) i++;
	return histogram_highest(i);
}

int64_t histogram_beyond(const struct histogram *h, int64_t timeout_ns) {
	return h->samples && h->most > timeout_ns ? h->most : timeout_ns;
}

/* Returns the middle of the durations that share a count. */
static double middle(unsigned index) {
	return (double)histogram_lowest(index) + (double)(((int64_t)1 << bucket_of(index)) >> 1);
}

/* Returns the mean over the samples of (value - about)^power; power is 1 or 2. */
static double moment(const struct histogram *h, double about, int power) {
	double sum = 0;
	if (!h->samples) return 0;
	unsigned last = histogram_index(h->most);
	for (unsigned i = histogram_index(h->least); i <= last; i++) {
		double distance = middle(i) - about;
		if (h->count[i]) sum += (double)h->count[i] * (power == 2 ? distance * distance : distance);
	}
	return sum / (double)h->samples;
}

double histogram_mean(const struct histogram *h) { return moment(h, 0, 1); }
double histogram_deviation(const struct histogram *h) { return sqrt(moment(h, histogram_mean(h), 2)); }
