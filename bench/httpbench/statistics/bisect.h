/* bisect.h - which rate a search tries next, by what the rates before it have shown. */
#ifndef BENCH_BISECT_H
#define BENCH_BISECT_H

#include <stdbool.h>

enum {
	BISECT_REPEATS = 3 /* runs in turn that show nothing end a search */
};

enum bisect_result {
	BISECT_MET,    /* the goal is met at this rate */
	BISECT_MISSED, /* it is not */
	BISECT_UNKNOWN /* something else was the limit: that moves no bound, and the rate is tried again */
};

struct bisect {
	double low, high; /* the goal is met at low (0: at no rate yet), and, if bounded, not met at high */
	bool bounded;
	unsigned unknown; /* results in turn */
	double precision; /* a part of high */
};

/* Begins with a rate at which the goal may be met. */
struct bisect bisect_begin(double rate, double precision);

/* Returns the rate to try, or 0 if the search has ended. */
double bisect_rate(const struct bisect *search);

void bisect_take(struct bisect *search, enum bisect_result result);

/* Returns whether it ended without a result. */
static inline bool bisect_undecided(const struct bisect *search) { return search->unknown >= BISECT_REPEATS; }

#endif
