/* report.h - prints the results of a run, in 80 columns. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "bench/httpbench/load/run.h"

enum { REPORT_TEXT = 16 };

/* The percentiles in every report. */
enum { REPORT_PERCENTILES = 7 };
extern const double report_percentile[REPORT_PERCENTILES];

/* The percentiles in tables that have a line for each run or second. */
enum { REPORT_BRIEF = 4 };
extern const double report_brief[REPORT_BRIEF];

void report_run(FILE *out, const struct plan *plan, const struct run *run);

/* Prints a table with the mean, the deviation and the percentiles of each duration that was measured. Lines end in
 * line_end. */
void report_durations(FILE *out, const char *line_end, const struct plan *plan, const struct measures *m);

/* Prints how often each kind of failure occurred, as " reset 3 wrong_status 1 (503)". */
void report_failures(FILE *out, const struct measures *m);

/* Prints one line about a period of a run. */
void report_line(FILE *out, double from_s, double to_s, const struct measures *m);

/* Formats a duration in ns as "1.23ms". If ns is negative, writes ">" and timeout_ns instead, or "failed" if that is
 * REPORT_FAILED. Returns text, which has REPORT_TEXT bytes. */
enum { REPORT_FAILED = -1 };
const char *report_duration(char *text, double ns, int64_t timeout_ns);

/* Formats a rate, with three significant digits if it is below 100. Returns text, which has REPORT_TEXT bytes. */
const char *report_rate(char *text, double per_second);

/* Returns how long the censored requests in h took at least, or REPORT_FAILED if none of all requests reached its
 * timeout. */
int64_t report_beyond(const struct measures *m, const struct histogram *h, int64_t timeout_ns);

/* Prints a line with a name, in 80 columns; the rest goes on the lines below. */
__attribute__((format(printf, 3, 4))) void report_wrapped(FILE *out, const char *name, const char *format, ...);

#endif
