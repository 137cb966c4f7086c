/* profile.h - perf(1) beside a run: it samples the stacks of a process, as of the server on this machine. */
#ifndef BENCH_PROFILE_H
#define BENCH_PROFILE_H

#include <sys/types.h>

/* Starts perf(1), which writes to perf.data in the working directory, and waits until it samples. Exits with a line
 * about an error if there is no process `sampled`, or no perf(1). */
void profile_begin(pid_t sampled);

/* Has it end, and waits until its file is written. Says so if it has none. */
void profile_end(void);

#endif
