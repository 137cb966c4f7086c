/* rank.h - which of several load generators, on as many machines, this one is; and when they start. */
#ifndef BENCH_RANK_H
#define BENCH_RANK_H

#include <stdbool.h>

enum { RANK_MAX = 1000000 };

/* From what Open MPI, MPICH, Slurm, Kubernetes (an indexed Job) or GNU parallel says in the environment. *rank stays as
 * it is where nobody says it, *ranks where nobody says how many there are (the last two do not). */
void rank_from_environment(unsigned *rank, unsigned *ranks);

/* A file name with each "%r" replaced by the rank; malloc'd, NULL: no memory. */
char *rank_in_name(const char *name, unsigned rank);

/* Sleeps until the clock says so many seconds since the epoch. false: that has passed already. */
bool rank_wait(double start_s);

#endif
