/* test_trend.c - a queue that grows is told from one that does not, in simulated runs of 20 seconds with 400 requests a
 * second that come at random (M/D/1, and servers with stalls, bursts, drifts and heavy tails). It prints how many of
 * them are called overloaded. */
#include <math.h>
#include <stdlib.h>

#include "bench/httpbench/statistics/trend.h"
#include "tests/unit/check.h"

enum { RUNS = 400, SECONDS = 20, RATE = 400 };

struct server {
	const char *name;
	double capacity; /* requests a second, one after the other */
	double burst;    /* by which arrivals are more in each fourth second, and less in the others; a part */
	double stall_s;  /* at a random moment */
	double drift;    /* by which the service is slower at the end of the run; a part */
	bool heavy;      /* one request in fifty takes by a Pareto law with the exponent 1.5 */
	int least, most; /* of RUNS that are said to be overloaded */
};

static double part(void) { return (rand() + 1.0) / ((double)RAND_MAX + 2.0); }

/* Returns how long a request is served, at a moment of the run. */
static double service_s(const struct server *s, double now_s) {
	double length_s = (1 + s->drift * now_s / SECONDS) / s->capacity;
	if (s->heavy) length_s = rand() % 50 ? length_s * 0.9 : length_s * 0.5 / pow(part(), 1 / 1.5);
	return length_s;
}

static bool overloaded(const struct server *s) {
	struct trend trend = {0};
	const double stall_at_s = part() * SECONDS;
	double least_s[SECONDS + 1], free_s = 0;
	int64_t first_ns, last_ns;
	bool stalled = s->stall_s == 0;
	for (int i = 0; i <= SECONDS; i++) least_s[i] = HUGE_VAL;
	for (double now_s = 0; now_s < SECONDS;) {
		const double more = (int)now_s % 4 == 0 ? 1 + s->burst : 1 - s->burst / 3;
		now_s += -log(part()) / (RATE * more);
		double begin_s = fmax(now_s, free_s);
		if (!stalled && now_s > stall_at_s) begin_s += s->stall_s, stalled = true;
		free_s = begin_s + service_s(s, now_s);
		const int second = free_s < SECONDS ? (int)free_s : SECONDS;
		least_s[second] = fmin(least_s[second], free_s - now_s);
	}
	for (int i = 0; i <= SECONDS; i++)
		if (least_s[i] < HUGE_VAL) trend_add(&trend, (int64_t)(least_s[i] * 1e9));
	return trend_grows(&trend, RATE, &first_ns, &last_ns);
}

static void overload_is_found_and_nothing_else(void **state) {
	static const struct server servers[] = {
		{.name = "load 50 %", .capacity = 800, .most = 0},
		{.name = "load 80 %", .capacity = 500, .most = 4},
		{.name = "load 90 %", .capacity = 444, .most = 20},
		{.name = "load 50 %, stalls of 2 s", .capacity = 800, .stall_s = 2, .most = 20},
		{.name = "load 50 %, bursts to 90 %", .capacity = 800, .burst = 0.8, .most = 4},
		{.name = "load 50 to 75 %, drifting", .capacity = 800, .drift = 0.5, .most = 4},
		{.name = "load 55 %, heavy tails", .capacity = 800, .heavy = true, .most = 20},
		{.name = "load 102.6 %", .capacity = 390, .least = 360, .most = RUNS},
		{.name = "load 110 %", .capacity = 364, .least = 396, .most = RUNS},
		{.name = "load 110 %, stalls of 2 s", .capacity = 364, .stall_s = 2, .least = 380, .most = RUNS},
		{.name = "load 200 %", .capacity = 200, .least = RUNS, .most = RUNS},
	};
	(void)state;
	srand(1);
	for (size_t i = 0; i < COUNT(servers); i++) {
		int found = 0;
		for (int n = 0; n < RUNS; n++) found += overloaded(&servers[i]);
		print_message("%-28s %5.1f %% overloaded\n", servers[i].name, 100.0 * found / RUNS);
		assert_in_range(found, servers[i].least, servers[i].most);
	}
}

/* The intervals of a long run become fewer, and the queue is seen all the same. */
static void long_runs_keep_their_trend(void **state) {
	(void)state;
	for (int64_t n = TREND_MIN; n < 100000; n = 3 * n + 1) {
		struct trend grows = {0}, stays = {0};
		int64_t first_ns, last_ns;
		for (int64_t i = 0; i < n; i++) {
			trend_add(&grows, 1000000 + i * 10000000);
			trend_add(&stays, 1000000 + i * 7919 % 1000);
		}
		assert_true(trend_grows(&grows, 400, &first_ns, &last_ns) && first_ns < last_ns &&
					!trend_grows(&stays, 400, &first_ns, &last_ns));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(overload_is_found_and_nothing_else),
									   cmocka_unit_test(long_runs_keep_their_trend)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
