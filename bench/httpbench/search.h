/* search.h - finds a server's limit by several runs in open loop. Each run lasts as long as the plan says; a first run
 * in closed loop finds the highest possible rate. Each run prints a line to stdout. */
#ifndef BENCH_SEARCH_H
#define BENCH_SEARCH_H

#include "bench/httpbench/load/plan.h"

struct goal {
	double percentile;
	int64_t limit_ns;
};

/* Parses "p99<5ms": a percentile of the whole time of a request, and its limit in ns, us, ms or s. Returns 0, or -1. */
int goal_parse(struct goal *goal, const char *text);

/* Finds and prints the highest rate, to SEARCH_PRECISION of it, at which two runs with different seeds meet the goal,
 * nothing fails and the answers keep up. Returns 0; 1 if there is none or SIGINT ended it; 2 if nothing was answered;
 * -1 with errno if a run could not be started. */
#define SEARCH_PRECISION 0.02
int search_goal(const struct plan *plan, const struct goal *goal);

/* Runs at 10 % to 110 % of the rate of closed loop. Returns 0; 1 if requests failed; 2 if nothing was answered; -1 with
 * errno. */
int search_sweep(const struct plan *plan);

#endif
