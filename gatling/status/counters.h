/* counters.h - the counters of a worker. Only its own thread writes them, without locks; other threads read them
 * meanwhile. Counting costs an addition. How long answers take is measured for only some of them, see
 * counters_sample(). */
#ifndef GATLING_STATUS_COUNTERS_H
#define GATLING_STATUS_COUNTERS_H

#include "gatling/status/values.h"

enum {
	STATUS_FIRST = 100, /* the lowest status of HTTP */
	STATUSES = 900,     /* an upstream may send any status of three digits */
	PROTOCOLS = COUNT_HTTP3 + 1 - COUNT_HTTP1,
	/* Times are counted in intervals, eight for each power of two. The first is for times below 2^10 ns, and the last
	 * for 2^36 ns (69 s) and more. */
	TIMES_SHIFT = 3,
	TIMES_FIRST = 10,
	TIMES_LAST = 36,
	TIMES = ((TIMES_LAST - TIMES_FIRST) << TIMES_SHIFT) + 2,
	/* In each second, the times of the first SAMPLED_AT_FIRST answers are measured, and then those of one in
	 * SAMPLE_WEIGHT. */
	SAMPLED_AT_FIRST = 16,
	SAMPLE_WEIGHT = 64
};

struct counters {
	uint64_t value[VALUES];
	uint64_t answers[PROTOCOLS][STATUSES]; /* [protocol - COUNT_HTTP1][status - STATUS_FIRST] */
	/* times from the arrival of a request until the first byte of its answer, or all of it, was given to the kernel */
	uint64_t first_byte[TIMES], duration[TIMES];
	uint64_t first_byte_ns, duration_ns; /* their sums */
	unsigned sampled, left; /* for counters_sample(): measured in this second; answers until the next one */
};

/* The counters of the calling thread. Threads that are not workers share a set that is not read. */
extern _Thread_local struct counters *counters;

/* Reads a counter of another thread. */
static inline uint64_t counter_read(const uint64_t *counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

static inline void counter_set(uint64_t *counter, uint64_t n) { __atomic_store_n(counter, n, __ATOMIC_RELAXED); }

static inline void counter_add(uint64_t *counter, uint64_t n) { counter_set(counter, *counter + n); }

static inline void count_n(enum value value, uint64_t n) { counter_add(&counters->value[value], n); }

static inline void count_one(enum value value) { count_n(value, 1); }

/* Lowers a gauge by one. */
static inline void uncount_one(enum value value) { counter_add(&counters->value[value], (uint64_t)-1); }

/* Moves one from a gauge to another. */
static inline void gauge_move(enum value from, enum value to) {
	uncount_one(from);
	count_one(to);
}

static inline void gauge_set(enum value value, uint64_t n) { counter_set(&counters->value[value], n); }

static inline void count_answer(enum value protocol, int status) {
	counter_add(&counters->answers[protocol - COUNT_HTTP1][status - STATUS_FIRST], 1);
}

/* Returns how many answers had the status STATUS_FIRST + `status`. */
static inline uint64_t counters_answers(const struct counters *c, unsigned status) {
	uint64_t sum = 0;
	for (unsigned i = 0; i < PROTOCOLS; i++) sum += c->answers[i][status];
	return sum;
}

/* Chooses the answers whose times are measured: all while there are few, so that a quiet server has something to show,
 * and otherwise a part, since reading the clock costs more than counting. Returns how many answers the next one stands
 * for, or 0 if it is not measured. */
static inline unsigned counters_sample(void) {
	struct counters *c = counters;
	if (c->left > 1) {
		c->left--;
		return 0;
	}
	return c->left = c->sampled++ < SAMPLED_AT_FIRST ? 1 : SAMPLE_WEIGHT;
}

/* Starts a second of counters_sample(). Call it once a second. */
static inline void counters_second(void) { counters->sampled = 0; }

/* Count a time for that many answers. */
void count_first_byte(int64_t ns, unsigned answers);
void count_duration(int64_t ns, unsigned answers);

/* Returns the longest time, in ns, that is counted in an interval, UINT64_MAX for the last. */
uint64_t times_limit(unsigned interval);

/* Returns the time, in ns, that a share (0 to 1) of the counted times did not exceed, or 0 if there are none. */
uint64_t times_quantile(const uint64_t times[TIMES], double share);

/* Returns a value of another thread, except those of the kernel. */
uint64_t counters_value(const struct counters *c, enum value value);

/* Adds the counters of a worker, which it may be writing to, to a sum, except the values of the kernel. */
void counters_sum(struct counters *sum, const struct counters *c);

#endif
