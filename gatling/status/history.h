/* history.h - the sums of the counters at each of the last seconds, and at each of the last minutes: what happened in
 * between is their difference. */
#ifndef GATLING_STATUS_HISTORY_H
#define GATLING_STATUS_HISTORY_H

#include "gatling/status/counters.h"

enum { HISTORY_SECONDS = 120, HISTORY_MINUTES = 60, HISTORY_MOMENTS = HISTORY_SECONDS + HISTORY_MINUTES + 2 };

struct moment {
	int64_t ms; /* of the monotonic clock */
	struct counters sum;
};

/* What is remembered of each worker at each moment. */
struct worker_moment {
	uint64_t requests, cpu_ns;
};

struct history {
	struct moment second[HISTORY_SECONDS + 1], minute[HISTORY_MINUTES + 1];
	unsigned seconds, minutes; /* so many were added */
	unsigned workers;
	struct worker_moment *of_worker; /* those of all workers, for each in second, and then for each in minute */
};

/* Prepares a history that is all zero for so many workers. Returns 0, or -1: ENOMEM. */
int history_open(struct history *history, unsigned workers);
void history_close(struct history *history);

/* Adds the sum of now; to be called once a second. worker: the counters of each. */
void history_add(struct history *history, int64_t now_ms, const struct counters *sum,
				 const struct counters *const *worker);

/* Returns the moment so many seconds or minutes ago, or the first of all if that is later. NULL: there is none. */
const struct moment *history_second(const struct history *history, unsigned ago);
const struct moment *history_minute(const struct history *history, unsigned ago);

/* Returns what a worker has done between two moments of the history; 0: they are the same. */
struct worker_rates {
	double requests, processors; /* requests a second; processors in use */
};
struct worker_rates history_worker(const struct history *history, unsigned worker, const struct moment *from,
								   const struct moment *to);

/* Returns how much a counter has grown in a second of the time between two moments; 0: they are the same. */
double history_rate(const struct moment *from, const struct moment *to, enum value value);

/* Returns a quantile of the times, duration or first_byte of struct counters, that were counted between two moments, in
 * seconds; 0: none was. */
double history_quantile(const uint64_t from[TIMES], const uint64_t to[TIMES], double share);

#endif
