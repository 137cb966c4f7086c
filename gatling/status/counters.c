/* counters.c - see counters.h. */
#include "gatling/status/counters.h"

static struct counters unread;
_Thread_local struct counters *counters = &unread;

/* --- times --- */

static unsigned interval_of(uint64_t ns) {
	if (ns < UINT64_C(1) << TIMES_FIRST) return 0;
	unsigned power = 63U - (unsigned)__builtin_clzll(ns);
	if (power >= TIMES_LAST) return TIMES - 1;
	unsigned eighth = (unsigned)(ns >> (power - TIMES_SHIFT)) & ((1U << TIMES_SHIFT) - 1);
	return 1 + ((power - TIMES_FIRST) << TIMES_SHIFT) + eighth;
}

uint64_t times_limit(unsigned interval) {
	if (interval == TIMES - 1) return UINT64_MAX;
	unsigned power = TIMES_FIRST + (interval >> TIMES_SHIFT), eighth = interval & ((1U << TIMES_SHIFT) - 1);
	return (UINT64_C(1) << power) + ((uint64_t)eighth << (power - TIMES_SHIFT)) - 1;
}

static void count_time(uint64_t *times, uint64_t *sum_ns, int64_t ns, uint64_t weight) {
	uint64_t time = ns > 0 ? (uint64_t)ns : 0;
	counter_add(&times[interval_of(time)], weight);
	counter_add(sum_ns, time * weight);
}

void count_first_byte(int64_t ns, unsigned answers) {
	count_time(counters->first_byte, &counters->first_byte_ns, ns, answers);
}

void count_duration(int64_t ns, unsigned answers) {
	count_time(counters->duration, &counters->duration_ns, ns, answers);
}

uint64_t times_quantile(const uint64_t times[TIMES], double share) {
	uint64_t all = 0, below = 0;
	for (unsigned i = 0; i < TIMES; i++) all += times[i];
	if (!all) return 0;
	unsigned i = 0;
	while (i < TIMES - 1 && (double)(below += times[i]) < share * (double)all) i++;
	return i < TIMES - 1 ? times_limit(i) + 1 : UINT64_C(1) << TIMES_LAST;
}

/* --- reading --- */

static void add_all(uint64_t *sum, const uint64_t *c, unsigned n) {
	for (unsigned i = 0; i < n; i++) sum[i] += counter_read(&c[i]);
}

uint64_t counters_value(const struct counters *c, enum value value) {
	uint64_t sum = 0;
	if (value < COUNT_HTTP1 || value > COUNT_HTTP3) return counter_read(&c->value[value]);
	for (unsigned i = 0; i < STATUSES; i++) sum += counter_read(&c->answers[value - COUNT_HTTP1][i]);
	return sum;
}

void counters_sum(struct counters *sum, const struct counters *c) {
	for (unsigned i = 0; i < WORKER_VALUES; i++) sum->value[i] += counters_value(c, (enum value)i);
	for (unsigned i = 0; i < PROTOCOLS; i++) add_all(sum->answers[i], c->answers[i], STATUSES);
	add_all(sum->first_byte, c->first_byte, TIMES);
	add_all(sum->duration, c->duration, TIMES);
	add_all(&sum->first_byte_ns, &c->first_byte_ns, 1);
	add_all(&sum->duration_ns, &c->duration_ns, 1);
}
