/* profile.h - samples the stacks of a process, such as a server on this machine, with perf(1) during a run. */
#ifndef BENCH_PROFILE_H
#define BENCH_PROFILE_H

#include <sys/types.h>

/* Starts perf(1), which writes perf.data in the working directory, and waits until it samples. If there is no process
 * `sampled`, or no perf(1), exits with an error message. */
void profile_begin(pid_t sampled);

/* Stops perf(1) and waits until it has written its file. If there is none, prints that. */
void profile_end(void);

#endif
