/* test_fair.c - for how long clients that wait for others are served in a turn. */
#include "gatling/load/fair.h"

#include "tests/unit/check.h"

static void a_turn_is_longer_while_nobody_else_is_there(void **state) {
	(void)state;
	const struct peer heavy = {.address.s6_addr = {1}}, other = {.address.s6_addr = {2}};
	struct fair f = {.waits = {peer_network(&heavy)}, .waiting = 1};
	const int64_t now_ms = 5000;
	assert_true(fair_waits(&f, &heavy, now_ms));
	assert_int_equal(fair_turn_ns(&f, now_ms), FAIR_ALONE_NS);
	assert_false(fair_waits(&f, &other, now_ms));
	assert_int_equal(fair_turn_ns(&f, now_ms), FAIR_TURN_NS);
	assert_true(fair_waits(&f, &heavy, now_ms + FAIR_ALONE_MS));
	assert_int_equal(fair_turn_ns(&f, now_ms + FAIR_ALONE_MS - 1), FAIR_TURN_NS);
	assert_int_equal(fair_turn_ns(&f, now_ms + FAIR_ALONE_MS), FAIR_ALONE_NS);
}

/* They nearly always wait. All heavy clients take the same on average; which one is measured next is random. A light
 * one takes a hundredth. */
static void of_those_that_take_the_same_all_wait(void **state) {
	(void)state;
	enum { HEAVY = 14, LIGHT = 100, SAMPLES = 20000 };
	struct fair f = {0};
	unsigned waiting = 0;
	srandom(1);
	for (int i = 0; i < SAMPLES; i++) {
		fair_count(&f, i % LIGHT ? 1 + (uint64_t)random() % HEAVY : LIGHT, 20000);
		assert_false(fair_has(&f, LIGHT));
		waiting += f.waiting;
	}
	assert_in_range(waiting, SAMPLES * HEAVY / 100 * 95, SAMPLES * HEAVY); /* without hysteresis: 65 % */
}

static void an_address_waits_no_more_when_it_takes_little(void **state) {
	(void)state;
	struct fair f = {0};
	for (int i = 0; i < FAIR_SAMPLES; i++) fair_count(&f, 1 + (uint64_t)i % 4, 20000);
	assert_true(fair_has(&f, 1));
	for (int i = 0; i < 8 * FAIR_SAMPLES; i++) fair_count(&f, i % 100 ? 2 + (uint64_t)i % 3 : 1, 20000);
	assert_false(fair_has(&f, 1));
	assert_int_equal(f.waiting, 3);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_turn_is_longer_while_nobody_else_is_there),
									   cmocka_unit_test(of_those_that_take_the_same_all_wait),
									   cmocka_unit_test(an_address_waits_no_more_when_it_takes_little)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
