/* run.h - a run: all clients of a plan from their start to their end, and what they measured together. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench/counters.h"
#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"

struct run {
	struct measures total;
	bool interrupted;         /* by SIGINT or SIGTERM */
	double started_s;         /* since the epoch */
	double elapsed_s;         /* how long the server was loaded; never 0 */
	double user_s, system_s;  /* processor time of this process, in */
	double usage_s;           /* so much time: until the last client had ended */
	struct counters counters; /* what was added to them */
};

/* Called about once a second with what was measured since the last call, and at the end; times in seconds since the
 * start. */
typedef void run_watch(void *context, double from_s, double to_s, const struct measures *m);

/* Answers a second. */
static inline double run_rate(const struct run *r) { return (double)r->total.count[COUNT_ANSWERED] / r->elapsed_s; }

/* Runs the plan. Returns 0, or -1 with errno if the clients could not be started. SIGINT or SIGTERM ends the run early,
 * with what is under way dropped after CLIENT_GRACE_S, and later runs at once; a second signal ends the program. A run
 * in which every connection, every TLS handshake or every upgrade fails ends early. */
int run_plan(const struct plan *plan, run_watch *watch, void *context, struct run *run);

#endif
