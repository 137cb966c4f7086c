/* files.h - writes a run for other programs: JSON at its end, tab-separated values and histograms each second. */
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include <stdio.h>

#include "bench/httpbench/load/run.h"

/* Writes the object of --json, which httpbench(1) describes. */
void files_json(FILE *out, const struct plan *plan, const struct run *run, double answered_per_s);

/* Write --tsv: the line that names the columns, and a line for a span of a run. */
void files_tsv_begin(FILE *out);
void files_tsv_line(FILE *out, double from_s, double to_s, const struct measures *m);

/* Begins --hlog with the settings of the run, for merging; started_s is since the epoch. */
void files_hlog_begin(FILE *out, const struct plan *plan, double started_s);

/* Writes a span of a run: a histogram of each duration that was measured and, with FILES_FAILED before the tag, one of
 * those that failed, as if each had taken at least as long as the timeout. Returns 0, or -1 with errno. */
#define FILES_FAILED "failed_"
int files_hlog(FILE *out, const struct plan *plan, double from_s, double to_s, const struct measures *m);

/* Ends --hlog with counts and failures. */
void files_hlog_end(FILE *out, const struct run *run);

#endif
