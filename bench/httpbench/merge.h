/* merge.h - the histogram logs of several runs as one result. */
#ifndef BENCH_MERGE_H
#define BENCH_MERGE_H

#include <stdio.h>

#include "bench/httpbench/load/run.h"

/* Reads the logs that --hlog wrote and adds them up in *run: counts are sums, elapsed_s is from the first start to the
 * last end; *timeout_ns becomes their timeout, *together_per_s the answers a second while all ran, 0 if they never did.
 * Prints a line about each to out, and what all of them did together. 0; or -1 after a line on stderr about each log
 * that was made with other options than the first, or is one rank's a second time: it does not count; that cannot be
 * read, or not to its end: what could be read of it counts; and about each rank that is missing. */
int merge_logs(FILE *out, char *const *path, unsigned paths, struct run *run, int64_t *timeout_ns,
			   double *together_per_s);

#endif
