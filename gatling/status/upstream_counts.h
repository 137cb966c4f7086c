/* upstream_counts.h - what has been passed on to each upstream, and what came of it, by all workers together. The
 * counters are there as long as the process: any thread may use them, without locks. */
#ifndef GATLING_STATUS_UPSTREAM_COUNTS_H
#define GATLING_STATUS_UPSTREAM_COUNTS_H

#include "gatling/base/notice.h"
#include "gatling/status/values.h"

enum { UPSTREAM_COUNTS_MAX = 64 }; /* addresses; those over it are counted together, as "others" */

enum upstream_value {
	UPSTREAM_REQUESTS, /* that were sent to it, or that it was to be connected to for */
	UPSTREAM_RESPONSES,
	UPSTREAM_ERRORS,   /* of them with a status of 5xx */
	UPSTREAM_FAILURES, /* it could not be connected to, or sent no whole response in time */
	UPSTREAM_NS,       /* from requests to the heads of their responses */
	UPSTREAM_ACTIVE,   /* requests under way */
	UPSTREAM_IDLE,     /* connections that are kept for the next one */
	UPSTREAM_VALUES
};

struct upstream_counts {
	char *address; /* ASCII; '?' stands for what would have to be quoted */
	uint64_t value[UPSTREAM_VALUES];
	notice_time next_notice; /* of a failure */
};

/* As they are shown; the label is "upstream", for each its address. */
extern const struct value_name upstream_value_name[UPSTREAM_VALUES];

/* Returns those of an address; of too many, or without memory, those of the others. */
struct upstream_counts *upstream_counts_of(const char *address);

static inline void upstream_count(struct upstream_counts *counts, enum upstream_value value, int64_t n) {
	__atomic_fetch_add(&counts->value[value], (uint64_t)n, __ATOMIC_RELAXED);
}

/* Returns those of the i-th address that there is, NULL: there are fewer. */
const struct upstream_counts *upstream_counts_at(unsigned i);

static inline uint64_t upstream_counts_value(const struct upstream_counts *counts, enum upstream_value value) {
	return counter_read(&counts->value[value]);
}

#endif
