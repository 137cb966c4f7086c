/* machine.h - what a measurement was made on, as the "# key<TAB>value" lines that begin every table of results. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Program, arguments, date, kernel, processor, clock, and the limits and settings of the network that matter. */
void machine_describe(FILE *out, int argc, char **argv);

/* CLOCK_MONOTONIC, in ns; and any clock, in seconds. */
int64_t machine_clock_ns(void);
double machine_seconds(clockid_t clock);

#endif
