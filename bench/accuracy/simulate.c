/* simulate.c - writes the log of a run whose truth is known, as httpbench --hlog would, for compare.
 *
 *     simulate LAW SEED SECONDS RATE FACTOR
 *
 * RATE requests a second take about FACTOR ms each, with a lognormal deviation of 0.5. LAW:
 *
 * steady    nothing else
 * drifting  a level, the same for all requests of a second, depends on that of the second before (AR(1): 0.6, 0.03)
 * bursty    in a tenth of the seconds, at random, all take three times as long
 * heavy     a hundredth of the requests take longer by a Pareto distribution with the exponent 2 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/hlog.h"
#include "bench/usage.h"

static const double DEVIATION = 0.5, LEVEL_KEPT = 0.6, LEVEL_DEVIATION = 0.03, BURST_SHARE = 0.1, BURST = 3,
					HEAVY_SHARE = 0.01, HEAVY_EXPONENT = 2;

/* Returns a number from 0 to 1, neither included. */
static double uniform(void) { return drand48() * (1 - 1e-12) + 5e-13; }

/* Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958. */
static double normal(void) { return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform()); }

int main(int argc, char **argv) {
	static const char *const laws[] = {"steady", "drifting", "bursty", "heavy"};
	usage_program = "simulate";
	if (argc != 6) usage_refuse("LAW SEED SECONDS RATE FACTOR are needed");
	const char *const law = argv[1];
	bool known = false;
	for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) known |= strcmp(law, laws[i]) == 0;
	if (!known) usage_refuse("there is no law %s", law);
	srand48((long)usage_whole_number("SEED", argv[2], 0, INT32_MAX));
	const unsigned seconds = (unsigned)usage_whole_number("SECONDS", argv[3], 1, 3600);
	const unsigned rate = (unsigned)usage_whole_number("RATE", argv[4], 1, 1e6);
	const double factor_ns = usage_number("FACTOR", argv[5], 1e-6, 1e6) * 1e6;
	double level = 0;
	hlog_begin(stdout, 1700000000);
	printf("#[Plan: version 1 url http://a/ urls 1 rate %u timeout_s 10.000 ranks 1 ]\n", rate);
	for (unsigned second = 0; second < seconds; second++) {
		static struct histogram h;
		histogram_reset(&h);
		if (strcmp(law, "drifting") == 0) level = LEVEL_KEPT * level + LEVEL_DEVIATION * normal();
		if (strcmp(law, "bursty") == 0) level = uniform() < BURST_SHARE ? log(BURST) : 0;
		for (unsigned i = 0; i < rate; i++) {
			double times = exp(level + DEVIATION * normal());
			if (strcmp(law, "heavy") == 0 && uniform() < HEAVY_SHARE) times *= pow(uniform(), -1 / HEAVY_EXPONENT);
			histogram_record(&h, (int64_t)(factor_ns * times));
		}
		if (hlog_write(stdout, "whole", second, 1, &h) == -1) usage_refuse("no memory");
	}
	printf("#[Verdict: PASS]\n#[Run: elapsed_s %u.0 answered %u ]\n", seconds, rate * seconds);
	return usage_end(0);
}
