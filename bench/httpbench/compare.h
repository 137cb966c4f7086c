/* compare.h - two runs compared by their logs: what differs, by how much, and how surely. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdbool.h>

enum { COMPARE_CONDITIONS_MAX = 16 };

/* What must not be: a percentile of the whole time of a request has grown, or the rate fallen, by more than a part. */
struct compare_condition {
	const char *text;
	bool rate;
	double percentile, limit; /* 0 to 100; 0.05: by 5 % */
};

/* Parses "p99>5%" or "rate<5%", which has to last. Returns 0, or -1. */
int compare_condition_parse(struct compare_condition *condition, const char *text);

/* Prints a table of two logs to stdout: the rate and percentiles of each, their ratio, and its interval with that
 * confidence (0.5 to 0.9999).
 *
 * The seconds of a log are not independent, so a run is cut into sections of several seconds; how far the value of each
 * is from that of the whole run tells how sure that is (sectioning: Asmussen and Glynn, "Stochastic Simulation", 2007,
 * III.5a). The logarithms of two runs are compared with Welch's test.
 *
 * Returns 0; 1 if a condition holds with that confidence, divided among them (Bonferroni); 2 after a line on stderr: a
 * log cannot be read, is too short, or leaves a condition open. */
int compare_logs(const char *const path[2], double confidence, const struct compare_condition *condition,
				 unsigned conditions);

#endif
