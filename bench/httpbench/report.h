/* report.h - prints a run for people, in 80 columns. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "bench/httpbench/load/run.h"

enum { REPORT_TEXT = 16 };

/* The percentiles that every report shows. */
enum { REPORT_PERCENTILES = 7 };
extern const double report_percentile[REPORT_PERCENTILES];

/* Those in tables with a line for each run or second. */
enum { REPORT_BRIEF = 4 };
extern const double report_brief[REPORT_BRIEF];

void report_run(FILE *out, const struct plan *plan, const struct run *run);

/* Prints the table of durations: mean, deviation and percentiles of each that was measured. Lines end in line_end. */
void report_durations(FILE *out, const char *line_end, const struct plan *plan, const struct measures *m);

/* Prints how often each kind of failure happened, as " reset 3 wrong_status 1 (503)". */
void report_failures(FILE *out, const struct measures *m);

/* Prints one line about a span of a run. */
void report_line(FILE *out, double from_s, double to_s, const struct measures *m);

/* Formats a duration in ns as "1.23ms", or -1 as ">" and the timeout, or as "failed" if that is REPORT_FAILED, into
 * text (REPORT_TEXT bytes). Returns text. */
enum { REPORT_FAILED = -1 };
const char *report_duration(char *text, double ns, int64_t timeout_ns);

/* Formats a rate, with three significant digits below 100, into text (REPORT_TEXT bytes). Returns text. */
const char *report_rate(char *text, double per_second);

/* Returns what requests without an answer took at least, of which a histogram has a part: REPORT_FAILED if none of
 * them waited until its timeout. */
int64_t report_beyond(const struct measures *m, const struct histogram *h, int64_t timeout_ns);

#endif
