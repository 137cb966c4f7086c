/* search.h - finds a server's limit by several runs in open loop. Each one lasts as long as the plan says; a first run
 * in closed loop finds the highest possible rate. Prints a line for each run to stdout. */
#ifndef BENCH_SEARCH_H
#define BENCH_SEARCH_H

#include "bench/httpbench/load/plan.h"

struct goal {
	double percentile;
	int64_t limit_ns;
};

/* Parses "p99<5ms": a percentile of DURATION_WHOLE, and its limit in ns, us, ms or s. Returns 0 or -1. */
int goal_parse(struct goal *goal, const char *text);

/* Finds and prints the highest rate, to within SEARCH_PRECISION, at which two runs with different seeds meet the goal,
 * no request fails, and the server keeps up. Returns 0; 1 if there is no such rate, or a signal ended the search; 2 if
 * nothing was answered, if the client was the limit, or if the runs are too short for the percentile; or -1 with errno
 * if a run could not be started. */
#define SEARCH_PRECISION 0.02
int search_goal(const struct plan *plan, const struct goal *goal);

/* Makes runs at 10 % to 110 % of the rate in closed loop. Returns 0; 1 if requests failed; 2 if nothing was answered;
 * or -1 with errno if a run could not be started. */
int search_sweep(const struct plan *plan);

#endif
