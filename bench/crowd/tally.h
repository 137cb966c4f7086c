/* tally.h - what became of the pages of a crowd. */
#ifndef BENCH_CROWD_TALLY_H
#define BENCH_CROWD_TALLY_H

#include "bench/httpbench/load/histogram.h"

/* How a page ended for its visitor. */
enum outcome {
	OUTCOME_ANSWERED, /* it and all its assets came in time */
	OUTCOME_REFUSED,  /* no connection, or nothing but its end, or 503 or 429 */
	OUTCOME_CUT,      /* after a part of it: the end of the connection, or 503 or 429 */
	OUTCOME_LATE,     /* the visitor gave up */
	OUTCOME_FAILED,   /* another status, or not HTTP */
	OUTCOMES
};

extern const char *const outcome_name[OUTCOMES];

enum { TALLY_REASON = 96 };

/* Counts of a span of time. */
struct tally {
	uint64_t arrived; /* visitors, hostile ones included */
	uint64_t pages;   /* asked for */
	uint64_t outcome[OUTCOMES];
	uint64_t reopened;                              /* connections, because the server had closed the one before */
	uint64_t expelled;                              /* hostile connections that the server closed */
	uint64_t unmade;                                /* visitors who did not come, because of a limit of this process */
	unsigned open;                                  /* connections, at the end of the span */
	struct histogram answered;                      /* how long the pages took that were answered */
	struct histogram lateness;                      /* from when a visitor was due until the client began to connect */
	char failed[TALLY_REASON], limit[TALLY_REASON]; /* why a page failed; which limit it was; empty: none */
};

/* Adds what `from` holds. */
void tally_add(struct tally *sum, const struct tally *from);

/* Empties it; an all-zero one is empty, too. */
void tally_reset(struct tally *tally);

#endif
