/* schedule.h - when requests are due, and for which target. It depends on a seed, never on the server. */
#ifndef BENCH_SCHEDULE_H
#define BENCH_SCHEDULE_H

#include "bench/httpbench/load/plan.h"

struct schedule {
	const struct plan *plan;
	uint64_t due_random[4], target_random[4]; /* xoshiro256**; apart, since only the former follows a clock */
	double interval_ns;                       /* mean, of this client */
	int64_t started_ns;
	double next_ns; /* when the next request is due, since then */
	double turn;    /* constant arrival: that, in intervals; their sum would drift */
};

/* Starts the schedule of the client of that number. */
void schedule_start(struct schedule *s, const struct plan *plan, unsigned number, int64_t started_ns);

/* Returns when the next request is due, in ns of CLOCK_MONOTONIC; moves on to the one after it. */
int64_t schedule_due(const struct schedule *s);
void schedule_advance(struct schedule *s);

/* Draws the number of a target. */
unsigned schedule_target(struct schedule *s);

#endif
