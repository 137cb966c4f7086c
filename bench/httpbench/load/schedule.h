/* schedule.h - when requests are due, and for which targets. This depends on a seed, never on the server. */
#ifndef BENCH_SCHEDULE_H
#define BENCH_SCHEDULE_H

#include "bench/httpbench/load/plan.h"

struct schedule {
	const struct plan *plan;
	uint64_t due_random[4], target_random[4]; /* xoshiro256**; separate, because only due times follow a clock */
	double interval_ns;                       /* between requests of this client, on average */
	int64_t started_ns;
	double next;    /* the same clock in requests: how many of this client are due before the next one, on average */
	double next_ns; /* when the next request is due, since started_ns */
};

/* Starts the schedule of the client with that number. */
void schedule_start(struct schedule *s, const struct plan *plan, unsigned number, int64_t started_ns);

/* schedule_due() returns when the next request is due, in ns of CLOCK_MONOTONIC; schedule_advance() goes on to the one
 * after it. */
int64_t schedule_due(const struct schedule *s);
void schedule_advance(struct schedule *s);

/* Draw a target, and the fields for a head. Return the index. */
unsigned schedule_target(struct schedule *s);
unsigned schedule_fields(struct schedule *s);

#endif
