/* rank.h - which of several load generators, on as many machines, this one is; and when they start. */
#ifndef BENCH_RANK_H
#define BENCH_RANK_H

#include <stdbool.h>

enum { RANK_MAX = 1000000 };

/* Reads what Open MPI, MPICH, Slurm, Kubernetes (an indexed Job) or GNU parallel put into the environment. Leaves *rank
 * and *ranks unchanged where they are not there; Kubernetes and GNU parallel do not tell *ranks. */
void rank_from_environment(unsigned *rank, unsigned *ranks);

/* Replaces each "%r" of a file name by the rank. Returns malloc'd memory, or NULL. */
char *rank_in_name(const char *name, unsigned rank);

/* Sleeps until start_s seconds after the epoch. Returns false if that time has passed. */
bool rank_wait(double start_s);

#endif
