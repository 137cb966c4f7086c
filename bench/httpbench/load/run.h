/* run.h - runs all clients of a plan from start to end, and adds up their results. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench/counters.h"
#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/statistics/trend.h"
#include "bench/others.h"

struct run {
	struct measures total;
	bool interrupted;         /* by SIGINT or SIGTERM */
	double started_s;         /* since the epoch */
	double elapsed_s;         /* how long the server was under load; never 0 */
	double after_s;           /* how long after that the last answer came; 0: none did */
	struct trend trend;       /* of DURATION_WHOLE, in seconds; of stages, that in which it grew, or the last one */
	unsigned stage;           /* its number */
	double user_s, system_s;  /* processor time of this process during */
	double usage_s;           /* this time, until the last client ended */
	struct counters counters; /* how much they changed during the run */
	char others[OTHERS_TEXT]; /* that other programs took the processors; "": they did not */
};

/* Called about once a second, and at the end, with the results since the last call; times are in seconds since the
 * start. */
typedef void run_watch(void *context, double from_s, double to_s, const struct measures *m);

/* Returns the answers a second under load. */
static inline double run_rate(const struct run *r) {
	return (double)(r->total.count[COUNT_ANSWERED] - r->total.count[COUNT_LATE]) / r->elapsed_s;
}

/* Returns for how much of the time, in per cent, the clients' threads waited for a processor. Merged runs have none. */
static inline double run_queued_percent(const struct plan *plan, const struct run *r) {
	return plan->clients ? (double)r->total.queued_ns / 1e7 / (r->usage_s * plan->clients) : 0;
}

/* Returns the rate of the requests that the trend is of. */
static inline double run_trend_rate(const struct plan *plan, const struct run *r) {
	return plan->stages.count ? plan->stages.stage[r->stage].per_s : plan->rate;
}

/* Takes one more interval into account. */
static inline void run_note_trend(struct run *r, const struct histogram *whole) {
	if (whole->samples) trend_add(&r->trend, whole->least);
}

/* Runs the plan. Returns 0, or -1 with errno if the clients could not be started. SIGINT or SIGTERM ends the run early:
 * requests under way are dropped after CLIENT_GRACE_S, and later runs end at once. A second signal ends the program. A
 * run also ends early if every connection, every TLS handshake or every upgrade fails. */
int run_plan(const struct plan *plan, run_watch *watch, void *context, struct run *run);

#endif
