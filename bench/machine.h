/* machine.h - facts about the machine: a description for the "# key<TAB>value" lines at the beginning of every table of
 * results, clocks, and the limit of descriptors. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Prints the program, its arguments, and the date, kernel, processor, clock, limits and network settings. */
void machine_describe(FILE *out, int argc, char **argv);

/* Return the time of CLOCK_MONOTONIC in ns, and of any clock in seconds. */
int64_t machine_clock_ns(void);
double machine_seconds(clockid_t clock);

/* Raises this process's limit of descriptors. Returns how many connections it allows, at most `most`. If it allows
 * none, exits with a message about the limit. */
unsigned machine_connections(unsigned most);

/* Returns how long, in ns since it started, this thread has waited for a processor; 0 on systems other than Linux. */
int64_t machine_queued_ns(void);

#endif
