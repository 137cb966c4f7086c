/* tally.h - counts how the pages of a crowd ended. */
#ifndef BENCH_CROWD_TALLY_H
#define BENCH_CROWD_TALLY_H

#include "bench/httpbench/statistics/histogram.h"

/* How a page ended for its visitor. */
enum outcome {
	OUTCOME_ANSWERED, /* the page and all its assets came in time */
	OUTCOME_REFUSED,  /* no connection, or it ended without a byte, or 503 or 429 for the page */
	OUTCOME_CUT,      /* the connection ended after the first byte, or 503 or 429 for an asset */
	OUTCOME_LATE,     /* the visitor gave up */
	OUTCOME_FAILED,   /* any other status than 2xx and 304, or not HTTP */
	OUTCOMES
};

extern const char *const outcome_name[OUTCOMES];

enum { TALLY_REASON = 96 };

/* The counts of a period. */
struct tally {
	uint64_t arrived; /* visitors, hostile ones included */
	uint64_t pages;   /* requested */
	uint64_t outcome[OUTCOMES];
	uint64_t reopened;                              /* connections, because the server had closed the previous one */
	uint64_t expelled;                              /* hostile connections that the server closed */
	uint64_t unmade;                                /* visitors who could not come because of a limit of this process */
	unsigned open;                                  /* connections, at the end of the period */
	struct histogram answered;                      /* the times that the answered pages took */
	struct histogram lateness;                      /* how late the client began to connect, for each visitor */
	char failed[TALLY_REASON], limit[TALLY_REASON]; /* the first reason; the first limit; empty: none */
};

/* Adds the counts of from. */
void tally_add(struct tally *sum, const struct tally *from);

/* Empties tally; one of zeros is empty, too. */
void tally_reset(struct tally *tally);

#endif
