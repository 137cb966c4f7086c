/* merge.h - merges the histogram logs of several runs into one result. */
#ifndef BENCH_MERGE_H
#define BENCH_MERGE_H

#include <stdio.h>

#include "bench/httpbench/load/run.h"

enum {
	MERGE_TOGETHER_PERCENT = 80, /* of the time of the longest log, */
	MERGE_SHORTEST_S = 1         /* unless that is shorter */
};

/* Reads the logs of --hlog and adds them up in *run: counts are sums, and elapsed_s is from the first start to the last
 * end. Sets *timeout_ns to their timeout, and *together_per_s to the answers a second while all ran, or 0 if they never
 * did. Prints a line about each log, and one about all together, to out.
 *
 * A verdict other than PASS is printed with its log.
 *
 * Returns 0; or -1 after messages on stderr. A log is left out if its options differ from those of the first log, if
 * its rank is there already, or if it cannot be read. If only its end cannot be read, the part before it counts. There
 * is a message, too, if ranks are missing, or if the logs have less than MERGE_TOGETHER_PERCENT of their time in
 * common. */
int merge_logs(FILE *out, char *const *path, unsigned paths, struct run *run, int64_t *timeout_ns,
			   double *together_per_s);

#endif
