/* staged.h - the results of each stage of a run whose rate changes (stages.h). */
#ifndef BENCH_STAGED_H
#define BENCH_STAGED_H

#include <stdio.h>

#include "bench/httpbench/load/run.h"

struct staged;

/* Returns room for the results of a plan's stages; NULL: it has none. Exits with a message if there is no memory. */
struct staged *staged_new(const struct plan *plan);
void staged_free(struct staged *staged);

/* Takes the results of an interval, as run_watch. staged may be NULL. */
void staged_take(struct staged *staged, double from_s, double to_s, const struct measures *m);

/* Prints a line for each stage. staged may be NULL. */
void staged_print(FILE *out, const struct staged *staged);

/* Prints the same as a member of an object of JSON, with its comma. */
void staged_json(FILE *out, const struct staged *staged);

#endif
