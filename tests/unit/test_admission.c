/* test_admission.c - how many visitors a server accepts when there are more than it can serve. */
#include "gatling/load/admission.h"

#include <math.h>

#include "tests/unit/check.h"

enum { MS = 1000000 };

static void waits_are_a_mean_over_time(void **state) {
	(void)state;
	struct waits w = {0};
	assert_true(waits_left(&w, MS) == 1); /* nothing is known yet */
	for (int i = 1; i <= 100; i++) waits_note(&w, (int64_t)i * MS, 0);
	assert_true(waits_left(&w, 100 * (int64_t)MS) == 1);
	waits_note(&w, 101 * (int64_t)MS, 20); /* it came during a long turn */
	assert_true(waits_left(&w, 101 * (int64_t)MS) > 0.7);
	for (int i = 1; i <= 10; i++) waits_note(&w, (101 + 20 * i) * (int64_t)MS, 40);
	assert_true(waits_left(&w, 301 * (int64_t)MS) == -4);
	assert_true(waits_mean(&w, 301 * (int64_t)MS) > 36);
	assert_true(waits_mean(&w, 1000 * (int64_t)MS) == 0); /* these waits were long ago */
	waits_note(&w, 10000 * (int64_t)MS, 0);
	assert_true(waits_left(&w, 10000 * (int64_t)MS) == 1);
}

static void one_that_waited_for_an_hour_says_little(void **state) {
	(void)state;
	struct waits w = {0};
	for (int i = 1; i <= 100; i++) waits_note(&w, MS, 1);
	waits_note(&w, MS, 3600 * 1000);
	assert_true(waits_mean(&w, MS) < 11);
}

/* Takes as many as allowed. */
static unsigned take_all(struct admission *r, double left, int64_t now_ns) {
	const unsigned count = (unsigned)admission_left(r, left, now_ns);
	admission_take(r, count, now_ns);
	return count;
}

static void the_least_get_in_however_long_requests_wait(void **state) {
	(void)state;
	struct admission r = {.rate = 100000};
	unsigned sum = 0;
	admission_begin(&r, 0);
	for (int64_t ms = 5; ms <= 20000; ms += 5) {
		const unsigned count = take_all(&r, -4, ms * MS);
		if (ms > 10000) sum += count;
	}
	assert_in_range(sum, 95, 105);
}

static void what_is_not_taken_does_not_pile_up(void **state) {
	(void)state;
	struct admission r = {.rate = 1000};
	admission_begin(&r, 0);
	assert_true(admission_left(&r, 0, 1000 * (int64_t)MS) <= 1000);
	assert_true(admission_left(&r, 0, 60000 * (int64_t)MS) <= 50);
}

static void what_is_not_taken_at_once_is_left(void **state) {
	(void)state;
	struct admission r = {.rate = 10000};
	admission_begin(&r, 0);
	const double left = admission_left(&r, 0, 50 * (int64_t)MS);
	assert_true(left > 100);
	admission_take(&r, 64, 50 * (int64_t)MS);
	assert_true(admission_left(&r, 0, 50 * (int64_t)MS) == left - 64);
}

static void a_ration_begins_with_what_was_taken_before(void **state) {
	(void)state;
	struct admission r = {0};
	for (int64_t ms = 10; ms <= 15000; ms += 10) admission_take(&r, 1, ms * MS);
	admission_begin(&r, 15000 * (int64_t)MS);
	assert_true(admission_left(&r, 0, 15000 * (int64_t)MS) == 0);
	const double left = admission_left(&r, 0, 15100 * (int64_t)MS);
	assert_true(left > 9 && left < 11);
}

static void enough_is_what_came_or_is_soon_allowed(void **state) {
	(void)state;
	const struct admission few = {.allowed = 10}, some = {.allowed = 500}, many = {.allowed = 10000};
	assert_true(admission_enough(&few, 100, 1000) == 1);
	assert_true(admission_enough(&some, 100, 0) == 0.5 * ADMISSION_WAIT_MS);
	assert_true(admission_enough(&some, 100, 1000) == 1.0 * ADMISSION_WAIT_MS);
	assert_true(admission_enough(&some, 100, 100000) == 0.5 * ADMISSION_PAUSE_MS);
	assert_true(admission_enough(&many, 0, 10000) == 1);
	assert_true(admission_enough(&many, 7, 10000) == 7);
	assert_true(admission_enough(&many, 100, 10000) == 10.0 * ADMISSION_WAIT_MS);
}

static void a_ration_is_too_small_if_nobody_waits_for_long(void **state) {
	(void)state;
	struct admission r = {.rate = 10};
	admission_begin(&r, 0);
	for (int64_t ms = 0; ms < ADMISSION_IDLE_S * 1000; ms++) {
		assert_false(admission_idle(&r));
		(void)take_all(&r, 1, ms * MS);
	}
	(void)admission_left(&r, 1, ADMISSION_IDLE_S * 1000 * (int64_t)MS);
	assert_true(admission_idle(&r));
	(void)admission_left(&r, 0, (ADMISSION_IDLE_S * 1000 + 1) * (int64_t)MS);
	assert_false(admission_idle(&r));
}

static void a_pace_is_of_the_last_seconds(void **state) {
	(void)state;
	struct pace p = {0};
	for (int i = 0; i < 5000; i++) pace_note(&p, 3, i * (int64_t)MS);
	assert_true(p.per_s > 2700 && p.per_s < 3100);
	pace_note(&p, 0, 10000 * (int64_t)MS);
	assert_true(p.per_s == 0);
}

/* Even if the rate has been a thousand times higher until now. */
static void there_is_soon_enough_for_the_least(void **state) {
	(void)state;
	struct admission r = {.rate = 30000};
	int64_t ms = 0;
	admission_begin(&r, 0);
	while (admission_left(&r, -4, ms * MS) < admission_enough(&r, 1000, 0)) ms++;
	assert_in_range(ms, 90, 110);
}

/* Simulates a server with cost_s of work for each visitor, who requests two pages, a second apart. More visitors come
 * than it can serve. Returns the share of the time that it works, and in *waits_s the longest wait for it, both after
 * the first ten seconds. */
static double simulate(double cost_s, double *waits_s) {
	enum { SECONDS = 40, STEPS = 1000 };
	static unsigned came[SECONDS * STEPS];
	struct waits w = {0};
	struct admission r = {.rate = 200};
	double to_do_s = 0, worked_s = 0;
	admission_begin(&r, 0);
	*waits_s = 0;
	for (int i = 0; i < SECONDS * STEPS; i++) {
		const int64_t now_ns = (int64_t)i * MS;
		waits_note(&w, now_ns, lround(to_do_s * 1e3 / 10)); /* a page is ten requests, one after the other */
		const double left = admission_left(&r, waits_left(&w, now_ns), now_ns);
		came[i] = left < admission_enough(&r, 1000, 20 / cost_s) ? 0 : take_all(&r, waits_left(&w, now_ns), now_ns);
		to_do_s += cost_s / 2 * (came[i] + (i < STEPS ? 0 : came[i - STEPS]));
		const double works_s = fmin(to_do_s, 0.001);
		to_do_s -= works_s;
		if (i < 10 * STEPS) continue;
		worked_s += works_s;
		*waits_s = fmax(*waits_s, to_do_s);
	}
	return worked_s / (SECONDS - 10);
}

static void a_server_has_enough_to_do_and_not_too_much(void **state) {
	(void)state;
	static const double cost_s[] = {0.002, 0.0005, 0.0001, 0.00005};
	for (unsigned i = 0; i < sizeof cost_s / sizeof *cost_s; i++) {
		double waits_s;
		const double part = simulate(cost_s[i], &waits_s);
		assert_true(part > 0.95);
		assert_true(waits_s < 0.1);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_a_mean_over_time),
		cmocka_unit_test(one_that_waited_for_an_hour_says_little),
		cmocka_unit_test(the_least_get_in_however_long_requests_wait),
		cmocka_unit_test(what_is_not_taken_does_not_pile_up),
		cmocka_unit_test(what_is_not_taken_at_once_is_left),
		cmocka_unit_test(a_ration_begins_with_what_was_taken_before),
		cmocka_unit_test(enough_is_what_came_or_is_soon_allowed),
		cmocka_unit_test(a_ration_is_too_small_if_nobody_waits_for_long),
		cmocka_unit_test(a_pace_is_of_the_last_seconds),
		cmocka_unit_test(there_is_soon_enough_for_the_least),
		cmocka_unit_test(a_server_has_enough_to_do_and_not_too_much),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
