/* rank.h - which of several load generators, on several machines, this one is, and when they start. */
#ifndef BENCH_RANK_H
#define BENCH_RANK_H

#include <stdbool.h>

enum { RANK_MAX = 1000000 };

/* Reads the environment variables of Open MPI, MPICH, Slurm, Kubernetes (an indexed Job) and GNU parallel. Without
 * them, *rank and *ranks are unchanged. Kubernetes and GNU parallel do not set *ranks. */
void rank_from_environment(unsigned *rank, unsigned *ranks);

/* Replaces each "%r" in a file name by the rank. Returns allocated memory, or NULL without memory. */
char *rank_in_name(const char *name, unsigned rank);

/* Sleeps until start_s seconds after the epoch. Returns false if that time has passed. */
bool rank_wait(double start_s);

#endif
