/* plan.h - the settings of a crowd. */
#ifndef BENCH_CROWD_PLAN_H
#define BENCH_CROWD_PLAN_H

#include "bench/httpbench/load/plan.h"
#include "bench/target.h"

/* Slow readers and half requests are the hostile ones. */
enum kind { KIND_VISITOR, KIND_SLOW, KIND_HALF, KINDS };

enum {
	CROWD_URLS_MAX = 65,          /* a page and its assets */
	CROWD_CLIENT_VISITORS = 19900 /* of a thread, below the limit of its table of descriptors */
};

struct crowd_plan {
	struct plan arrivals; /* rate, seed, threads, source addresses; its targets are kinds */
	double share[KINDS];  /* of the kinds up to and with each, rising to 1 */
	struct target *url;   /* the page, then its assets; all of one server */
	unsigned urls;
	unsigned pages;    /* that a visitor asks for */
	unsigned visitors; /* of a thread at the same time, at most */
	int64_t think_ns, patience_ns;
	int64_t warm_up_ns, duration_ns; /* whole seconds */
};

#endif
