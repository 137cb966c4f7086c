/* machine.h - what a benchmark has to know of its machine: a description for the "# key<TAB>value" lines at the
 * beginning of every table of results, clocks, and the limit of descriptors. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Prints program, arguments, date, kernel, processor, clock, limits and settings of the network. */
void machine_describe(FILE *out, int argc, char **argv);

/* CLOCK_MONOTONIC, in ns; and any clock, in seconds. */
int64_t machine_clock_ns(void);
double machine_seconds(clockid_t clock);

/* Raises this process's limit of descriptors. Returns how many connections that leaves it, at most `most`. Exits with a
 * line about the limit if it leaves none. */
unsigned machine_connections(unsigned most);

/* Returns for how long this thread, ever since its start, could run and waited for a processor, in ns; 0 on systems
 * other than Linux. */
int64_t machine_queued_ns(void);

#endif
