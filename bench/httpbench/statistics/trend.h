/* trend.h - whether requests wait longer and longer: then more come than the server can answer, and the percentiles of
 * a run say how long it was, not how fast the server is.
 *
 * The shortest duration in an interval shows that: after a stall, or a burst, some requests are soon as fast as before,
 * but in a queue that grows none is. */
#ifndef BENCH_TREND_H
#define BENCH_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TREND_MAX = 64,    /* intervals; when there are more, two become one */
	TREND_MIN = 6,     /* fewer show nothing */
	TREND_WAITING = 3, /* requests, by which a queue grows at least from the first quarter to the last */
	TREND_PERCENT = 50 /* of pairs of intervals, at least, in which the later one is longer, less those in which it is
						  shorter (Kendall, "A New Measure of Rank Correlation", 1938) */
};

struct trend {
	int64_t least_ns[TREND_MAX];
	unsigned count, width, part; /* intervals in an entry, and in the one after the last, which is not full */
	int64_t part_ns;
};

/* Adds the next interval with its shortest duration. */
void trend_add(struct trend *trend, int64_t least_ns);

/* Returns whether a queue has grown, if so many requests a second come: the median of the last quarter of the run is at
 * least half as much again as that of the first. Sets those. */
bool trend_grows(const struct trend *trend, double per_s, int64_t *first_ns, int64_t *last_ns);

#endif
