/* verdict.h - whether a run counts. */
#ifndef BENCH_VERDICT_H
#define BENCH_VERDICT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/httpbench/load/run.h"

enum {
	VERDICT_TEXT = 512,
	VERDICT_BUSY_PERCENT = 90, /* of its threads' time: more, and it is the client that was measured */
	VERDICT_LATE_PERCENT = 10, /* the same for lateness as a part of an answer's time, both at 99 %, */
	VERDICT_LATE_NS = 100000   /* if it is longer than a thread takes to wake up */
};

#define VERDICT_SHORTEST_S 0.1 /* of a shorter run beginning and end are too large a part */

/* Returns the first of these that holds, and why in text (VERDICT_TEXT bytes; "" for PASS):
 * FAIL, nothing was answered; LIMIT, ports or descriptors ran out; CLIENT, the load generator was the bottleneck;
 * NOISY, others took processor time; XPASS, a counter of the kernel moved; PASS. */
const char *verdict_of(const struct plan *plan, const struct run *run, char *text);

/* Prints a line about what kept the run from being measured, if it is known. Returns whether it did. */
bool verdict_explain(FILE *out, const struct plan *plan, const struct measures *m);

#endif
