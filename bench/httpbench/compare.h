/* compare.h - compares two runs by their logs: what differs, by how much, and with what confidence. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdbool.h>

enum { COMPARE_CONDITIONS_MAX = 16 };

#define COMPARE_NO_CONFIDENCE 0.9 /* with which a condition has to be false, or it is open */

/* A failure: a percentile of DURATION_WHOLE has grown, or the rate has fallen, by more than a part; or more than a part
 * of the requests of the second run failed. */
struct compare_condition {
	const char *text;
	enum { COMPARE_PERCENTILE, COMPARE_RATE, COMPARE_FAILED } of;
	double percentile, limit; /* 0 to 100; 0.05: by 5 % */
};

/* Parses "p99>5%", "rate<5%" or "failed>0.1%", which must remain valid. Returns 0 or -1. */
int compare_condition_parse(struct compare_condition *condition, const char *text);

/* Prints a table of two logs to stdout: the rate and the percentiles of each, their ratios, and the confidence
 * intervals of these; confidence is from 0.5 to 0.9999.
 *
 * The seconds of a log are not independent, so a run is divided into sections of several seconds. How far the value of
 * a section is from that of the whole run shows how reliable this is (sectioning: Asmussen and Glynn, "Stochastic
 * Simulation", 2007, III.5a). The logarithms of two runs are compared with Welch's test.
 *
 * For a condition, the sections of both are also exchanged at random (permuted.h): the less sure of the two answers
 * counts.
 *
 * A run whose queue grew (trend.h) has no percentiles that could be compared: they grow with the length of the run. The
 * verdict that each log has is printed; one that says that the client was the limit decides no condition.
 *
 * Returns 1 if a condition holds with that confidence, which is divided among them (Bonferroni); 0 if none does, with
 * COMPARE_NO_CONFIDENCE; or, after a message on stderr or stdout, 2 if a log cannot be read, or is too short, or if
 * neither is sure. */
int compare_logs(const char *const path[2], double confidence, const struct compare_condition *condition,
				 unsigned conditions);

#endif
