/* compare.h - compares two runs by their logs: what differs, by how much, and with what confidence. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdbool.h>

enum { COMPARE_CONDITIONS_MAX = 16 };

/* A failure: a percentile of DURATION_WHOLE has grown, or the rate has fallen, by more than a part. */
struct compare_condition {
	const char *text;
	bool rate;
	double percentile, limit; /* 0 to 100; 0.05: by 5 % */
};

/* Parses "p99>5%" or "rate<5%", which must remain valid. Returns 0 or -1. */
int compare_condition_parse(struct compare_condition *condition, const char *text);

/* Prints a table of two logs to stdout: the rate and the percentiles of each, their ratios, and the confidence
 * intervals of these; confidence is from 0.5 to 0.9999.
 *
 * The seconds of a log are not independent, so a run is divided into sections of several seconds. How far the value of
 * a section is from that of the whole run shows how reliable this is (sectioning: Asmussen and Glynn, "Stochastic
 * Simulation", 2007, III.5a). The logarithms of two runs are compared with Welch's test.
 *
 * Returns 1 if a condition holds with that confidence, which is divided among them (Bonferroni), otherwise 0; or, after
 * a message on stderr or stdout, 2 if a log cannot be read, or is too short, or a condition cannot be decided. */
int compare_logs(const char *const path[2], double confidence, const struct compare_condition *condition,
				 unsigned conditions);

#endif
