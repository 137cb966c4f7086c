/* upstream_counts.h - counters of each upstream, by all workers together. They last as long as the process, and any
 * thread may use them without locks. */
#ifndef GATLING_STATUS_UPSTREAM_COUNTS_H
#define GATLING_STATUS_UPSTREAM_COUNTS_H

#include "gatling/base/notice.h"
#include "gatling/status/counters.h"

enum { UPSTREAM_COUNTS_MAX = 64 }; /* addresses; further ones are counted together, as "others" */

struct upstream_counts {
	char *address; /* visible ASCII; '?' replaces what would have to be quoted */
	uint64_t value[UPSTREAM_VALUES];
	notice_time next_notice; /* when a failure may be logged again */
};

/* Returns the counters of an address, or those of "others" if there are too many, or no memory. */
struct upstream_counts *upstream_counts_of(const char *address);

static inline void upstream_count(struct upstream_counts *counts, enum upstream_value value, int64_t n) {
	if (n) __atomic_fetch_add(&counts->value[value], (uint64_t)n, __ATOMIC_RELAXED);
}

/* Counts a response with that status, whose head took so long. */
static inline void upstream_count_response(struct upstream_counts *counts, int status, int64_t ns) {
	upstream_count(counts, UPSTREAM_RESPONSES, 1);
	upstream_count(counts, UPSTREAM_ERRORS, status >= 500 && status < 600);
	upstream_count(counts, UPSTREAM_NS, ns);
}

/* Counts connections that have become active, and idle. */
static inline void upstream_count_links(struct upstream_counts *counts, int active, int idle) {
	upstream_count(counts, UPSTREAM_ACTIVE, active);
	upstream_count(counts, UPSTREAM_IDLE, idle);
}

/* Returns the counters of the i-th address. After the last one it returns those of "others", if these are in use, and
 * then NULL. */
const struct upstream_counts *upstream_counts_at(unsigned i);

static inline uint64_t upstream_counts_value(const struct upstream_counts *counts, enum upstream_value value) {
	return counter_read(&counts->value[value]);
}

#endif
