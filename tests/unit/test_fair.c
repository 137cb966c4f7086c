/* test_fair.c - how long those that wait for others are served in a turn. */
#include "gatling/conn/fair.h"

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

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_turn_is_longer_while_nobody_else_is_there)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
