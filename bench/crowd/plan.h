/* plan.h - the settings of a crowd. */
#ifndef BENCH_CROWD_PLAN_H
#define BENCH_CROWD_PLAN_H

#include "bench/httpbench/load/plan.h"
#include "bench/client/target.h"

/* Slow readers and those who send half a request are hostile. */
enum kind { KIND_VISITOR, KIND_SLOW, KIND_HALF, KINDS };

enum {
	CROWD_URLS_MAX = 65,          /* a page and its assets */
	CROWD_CLIENT_VISITORS = 19900 /* of a thread, fewer than its table of descriptors holds */
};

struct crowd_plan {
	struct plan arrivals; /* rate, seed, threads, source addresses; its targets are of enum kind */
	double share[KINDS];  /* the shares of the kinds, cumulative: the last one is 1 */
	struct target *url;   /* the page, then its assets, all on the same server */
	unsigned urls;
	unsigned pages;    /* that a visitor requests */
	unsigned visitors; /* of a thread at the same time, at most */
	int64_t think_ns, patience_ns;
	int64_t warm_up_ns, duration_ns; /* whole seconds */
};

#endif
