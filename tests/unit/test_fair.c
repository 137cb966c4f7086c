/* test_fair.c - how long those that wait for others are served in a turn. */
#include "gatling/conn/fair.h"

#include <arpa/inet.h>

#include "tests/unit/check.h"

static struct peer peer_from(const char *address) {
	struct sockaddr_in a = {.sin_family = AF_INET};
	assert_int_equal(inet_pton(AF_INET, address, &a.sin_addr), 1);
	return peer_of((struct sockaddr *)&a);
}

static void a_turn_is_longer_while_nobody_else_is_there(void **state) {
	(void)state;
	const struct peer heavy = peer_from("192.0.2.1"), other = peer_from("192.0.2.2");
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
