/* verdict.h - whether the result of a run is valid. */
#ifndef BENCH_VERDICT_H
#define BENCH_VERDICT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/httpbench/load/run.h"

enum {
	VERDICT_TEXT = 512,
	VERDICT_BUSY_PERCENT = 90, /* of its threads' time: if it is more, the client is the limit */
	VERDICT_LATE_PERCENT = 10, /* the same for lateness, compared to DURATION_WHOLE, both at 99 %, */
	VERDICT_LATE_NS = 100000   /* if it is longer than a thread takes to wake up */
};

#define VERDICT_SHORTEST_S 0.1 /* in a shorter run, the beginning and the end are too large a part */

/* Returns the first verdict that applies, and writes the reason to text (VERDICT_TEXT bytes; "" for PASS).
 * FAIL: nothing was answered; LIMIT: ports or descriptors ran out; CLIENT: the load generator was the limit; NOISY:
 * other guests of the host took processor time; XPASS: a counter of the kernel changed; PASS: none of these. */
const char *verdict_of(const struct plan *plan, const struct run *run, char *text);

/* Prints a message if it is known what made the run fail. Returns whether it did. */
bool verdict_explain(FILE *out, const struct plan *plan, const struct measures *m);

#endif
