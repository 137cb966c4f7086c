/* search.h - several runs in open loop: what a server takes. Each run lasts as long as the plan says, and the first, in
 * closed loop, finds out what is possible at all. A line about each run goes to stdout. */
#ifndef BENCH_SEARCH_H
#define BENCH_SEARCH_H

#include "bench/httpbench/load/plan.h"

struct goal {
	double percentile;
	int64_t limit_ns;
};

/* "p99<5ms": a percentile of the whole time of a request, and its limit in ns, us, ms or s. 0; -1: it is no such thing.
 */
int goal_parse(struct goal *goal, const char *text);

/* Finds the highest rate, to SEARCH_PRECISION of it, at which two runs with other seeds meet the goal, nothing fails
 * and the answers keep up; and prints it. 0; 1: there is none, or SIGINT ended it; 2:
 * nothing was answered; -1 with errno: a run could not be
 * started.
 */
#define SEARCH_PRECISION 0.02
int search_goal(const struct plan *plan, const struct goal *goal);

/* Runs at 10 % to 110 % of what closed loop reaches. 0; 1: some requests failed; 2: nothing was
 * answered; -1 with errno. */
int search_sweep(const struct plan *plan);

#endif
