/* history.h - the sums of the counters at each of the last seconds, and at each of the last minutes. What happened in
 * between is their difference. */
#ifndef GATLING_STATUS_HISTORY_H
#define GATLING_STATUS_HISTORY_H

#include "gatling/status/counters.h"

enum { HISTORY_SECONDS = 120, HISTORY_MINUTES = 60, HISTORY_MOMENTS = HISTORY_SECONDS + HISTORY_MINUTES + 2 };

struct moment {
	int64_t ms; /* of the monotonic clock */
	struct counters sum;
};

/* The values of a worker at a moment. */
struct worker_moment {
	uint64_t requests, cpu_ns;
};

struct history {
	struct moment second[HISTORY_SECONDS + 1], minute[HISTORY_MINUTES + 1];
	unsigned seconds, minutes; /* how many were added */
	unsigned workers;
	struct worker_moment *of_worker; /* of all workers for each moment in second, then for each in minute */
};

/* Prepares a history, which must be all zero, for that many workers. Returns 0, or -1 without memory. */
int history_open(struct history *history, unsigned workers);
void history_close(struct history *history);

/* Adds the current sum. Call it once a second. worker: the counters of each worker. */
void history_add(struct history *history, int64_t now_ms, const struct counters *sum,
				 const struct counters *const *worker);

/* Return the moment that many seconds or minutes ago, or the oldest one that is kept, or NULL if there is none yet. */
const struct moment *history_second(const struct history *history, unsigned ago);
const struct moment *history_minute(const struct history *history, unsigned ago);

/* Returns the rates of a worker between two moments of the history, 0 if they are the same. */
struct worker_rates {
	double requests, processors; /* requests a second; processors in use */
};
struct worker_rates history_worker(const struct history *history, unsigned worker, const struct moment *from,
								   const struct moment *to);

/* Returns how much a counter grew per second between two moments, 0 if they are the same. */
double history_rate(const struct moment *from, const struct moment *to, enum value value);

/* Returns a quantile, in seconds, of the times (duration or first_byte of struct counters) that were counted between
 * two moments, or 0 if there were none. */
double history_quantile(const uint64_t from[TIMES], const uint64_t to[TIMES], double share);

#endif
