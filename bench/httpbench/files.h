/* files.h - writes the results of a run for other programs: JSON at the end, tab-separated values and histograms each
 * second. */
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include <stdio.h>

#include "bench/httpbench/load/run.h"
#include "bench/httpbench/staged.h"

/* Writes the object for --json, which httpbench(1) describes; staged: see there, or NULL. */
void files_json(FILE *out, const struct plan *plan, const struct run *run, double answered_per_s,
				const struct staged *staged);

/* Write --tsv: the line with the names of the columns, and a line for a period of a run. */
void files_tsv_begin(FILE *out);
void files_tsv_line(FILE *out, double from_s, double to_s, const struct measures *m);

/* Begins --hlog with the settings of the run, which merging needs; started_s is since the epoch. */
void files_hlog_begin(FILE *out, const struct plan *plan, double started_s);

/* Writes a period of a run: a histogram of each duration that was measured and, with FILES_FAILED before its tag, one
 * of those that failed, as if each had reached the timeout. Returns 0, or -1 with errno. */
#define FILES_FAILED "failed_"
int files_hlog(FILE *out, const struct plan *plan, double from_s, double to_s, const struct measures *m);

/* Ends --hlog with the counts and failures. */
void files_hlog_end(FILE *out, const struct plan *plan, const struct run *run);

#endif
