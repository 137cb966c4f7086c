/* schedule.h - when requests are due, and for what: made from a seed, and moved by nothing that the server does. */
#ifndef BENCH_SCHEDULE_H
#define BENCH_SCHEDULE_H

#include "bench/httpbench/load/plan.h"

struct schedule {
	const struct plan *plan;
	uint64_t due_random[4], target_random[4]; /* xoshiro256**; apart, since only the former follows a clock */
	double interval_ns;                       /* mean, of this client */
	int64_t started_ns;
	double next_ns; /* when the next request is due, since then */
};

/* Of the client of that number. */
void schedule_start(struct schedule *s, const struct plan *plan, unsigned number, int64_t started_ns);

/* When the next request is due, on CLOCK_MONOTONIC in ns; and on to the one after it. */
int64_t schedule_due(const struct schedule *s);
void schedule_advance(struct schedule *s);

/* The number of a target. */
unsigned schedule_target(struct schedule *s);

#endif
