/* merge.h - the histogram logs of several runs as one result. */
#ifndef BENCH_MERGE_H
#define BENCH_MERGE_H

#include "bench/run.h"

/* Reads the logs that --hlog wrote and adds them up in *run: counts are sums, elapsed_s is from the first start to the
 * last end; *timeout_ns becomes the longest timeout. Prints a line about each to stdout, and one about the span in
 * which all of them ran. 0; or -1 after a line on stderr about each that cannot be read, or not to its end: what could
 * be read of it counts. */
int merge_logs(char *const *path, unsigned paths, struct run *run, int64_t *timeout_ns);

#endif
