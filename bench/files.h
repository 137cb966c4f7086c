/* files.h - a run as files for programs: JSON at its end, a line of tab-separated values and histograms a second. */
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include <stdio.h>

#include "bench/run.h"

/* What --json holds: one object; durations in ns, a percentile that is not known is null. */
void files_json(FILE *out, const struct plan *plan, const struct run *run);

/* What --tsv holds: the line that names the columns, and a line for a span of a run. */
void files_tsv_begin(FILE *out);
void files_tsv_line(FILE *out, double from_s, double to_s, const struct measures *m);

/* What --hlog holds for a span of a run: a histogram of each duration that was measured. 0, or -1 with errno. */
int files_hlog(FILE *out, double from_s, double to_s, const struct measures *m);

/* Its last lines, with what has no place in histograms, for merging. */
void files_hlog_end(FILE *out, const struct plan *plan, const struct run *run);

#endif
