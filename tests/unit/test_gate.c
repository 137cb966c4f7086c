/* test_gate.c - estimates of how many connections are refused while no socket listens. */
#include "gatling/gate.h"

#include <limits.h>

#include "tests/unit/check.h"

enum { MS = 1000000 };

static void those_that_come_while_it_listens_tell_how_many_do_meanwhile(void **state) {
	(void)state;
	struct gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .listening = 1};
	int64_t now_ns = 0;
	gate_shut(&g, 1000, now_ns); /* in how long these came is not known */
	assert_int_equal(gate_open(&g, now_ns += 10 * MS), 0);
	for (int i = 0; i < 200; i++) {
		gate_shut(&g, 20, now_ns += 10 * MS);
		assert_in_range(gate_open(&g, now_ns += 30 * MS), 59, 61);
	}
	for (int i = 0; i < 400; i++) { /* half as many come */
		gate_shut(&g, 10, now_ns += 10 * MS);
		(void)gate_open(&g, now_ns += 30 * MS);
	}
	gate_shut(&g, 10, now_ns += 10 * MS);
	assert_in_range(gate_open(&g, now_ns += 300 * MS), 295, 340);
}

static void while_another_socket_listens_nobody_is_refused(void **state) {
	(void)state;
	struct gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .listening = 2, .counts = true};
	gate_shut(&g, 10, 10 * MS);
	assert_int_equal(gate_open(&g, 20 * MS), 0);
	gate_shut(&g, 10, 30 * MS);
	gate_shut(&g, 10, 60 * MS); /* 30 in 60 ms */
	assert_in_range(gate_open(&g, 100 * MS), 19, 20);
	assert_int_equal(gate_open(&g, 200 * MS), 0);
}

static void when_counting_begins_again_the_time_before_does_not_count(void **state) {
	(void)state;
	struct gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .listening = 1, .counts = true};
	gate_shut(&g, 10, 10 * MS);
	(void)gate_open(&g, 20 * MS);
	gate_count(&g);
	gate_shut(&g, 1, 5000 * (int64_t)MS);
	assert_in_range(gate_open(&g, 5010 * (int64_t)MS), 9, 11);
}

static void a_worker_may_come_late_with_its_time(void **state) {
	(void)state;
	struct gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .listening = 1, .counts = true};
	gate_shut(&g, 10, 20 * MS);
	assert_int_equal(gate_open(&g, 10 * MS), 0);
	gate_shut(&g, 0, 15 * MS);
	assert_in_range(gate_open(&g, 40 * MS), 9, 10);
}

static void a_number_that_is_too_large_is_the_largest(void **state) {
	(void)state;
	struct gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .listening = 1, .counts = true};
	gate_shut(&g, 1000000, 1);
	assert_int_equal(gate_open(&g, 10000 * (int64_t)MS), INT_MAX);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_come_while_it_listens_tell_how_many_do_meanwhile),
		cmocka_unit_test(while_another_socket_listens_nobody_is_refused),
		cmocka_unit_test(when_counting_begins_again_the_time_before_does_not_count),
		cmocka_unit_test(a_worker_may_come_late_with_its_time),
		cmocka_unit_test(a_number_that_is_too_large_is_the_largest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
