/* verdict.h - whether the result of a run is valid. */
#ifndef BENCH_VERDICT_H
#define BENCH_VERDICT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/httpbench/load/run.h"

enum {
	VERDICT_TEXT = 512,
	VERDICT_BUSY_PERCENT = 90,     /* of its threads' time: if it is more, the client is the limit */
	VERDICT_LATE_PERCENT = 10,     /* the same for lateness, compared to DURATION_WHOLE, both at 99 %, */
	VERDICT_LATE_NS = 100000,      /* if it is longer than a thread takes to wake up */
	VERDICT_FAILED_PER_MILLE = 10, /* of the requests */
	VERDICT_QUEUED_PERCENT = 2     /* of the threads' time, for which they waited for a processor */
};

#define VERDICT_SHORTEST_S 0.1 /* in a shorter run, the beginning and the end are too large a part */

/* The first one from below that applies is that of a run. */
enum verdict {
	VERDICT_PASS,        /* none of these */
	VERDICT_XPASS,       /* a counter of the kernel changed */
	VERDICT_NOISY,       /* other programs, or other guests of the host, took processor time */
	VERDICT_FAILED,      /* more than VERDICT_FAILED_PER_MILLE failed */
	VERDICT_CONNECTIONS, /* "CLIENT": it had too few for this server */
	VERDICT_LATE,        /* "CLIENT": it sent late */
	VERDICT_OVERLOADED,  /* more is due than the server can answer: the queue grows (trend.h) */
	VERDICT_CLIENT,      /* the load generator was busy */
	VERDICT_LIMIT,       /* ports or descriptors ran out */
	VERDICT_NOTHING,     /* "FAILED": nothing was answered */
	VERDICTS
};

/* The words in reports and logs. */
extern const char *const verdict_name[VERDICTS];

/* Returns the verdict of a run, and writes the reason to text (VERDICT_TEXT bytes; "" for PASS). */
enum verdict verdict_of(const struct plan *plan, const struct run *run, char *text);

/* Returns whether a run with such a verdict says nothing about the server, because something else was the limit or
 * disturbed it: another run may. */
bool verdict_is_of_client(enum verdict verdict);

/* Returns whether the queue of the server grows, if so many requests a second are due, and describes it in text. */
bool verdict_overloaded(const struct trend *trend, double per_s, char *text);

/* Prints a message if it is known what made the run fail. Returns whether it did. */
bool verdict_explain(FILE *out, const struct plan *plan, const struct measures *m);

#endif
