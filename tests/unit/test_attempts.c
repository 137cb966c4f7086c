/* test_attempts.c - each address has its own attempts, however many there are. */
#include "gatling/site/attempts.h"
#include "tests/unit/check.h"

static struct peer v4(unsigned n) {
	struct peer p = {0};
	memcpy(p.address.s6_addr, (unsigned char[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10}, 13);
	for (int i = 0; i < 3; i++) p.address.s6_addr[13 + i] = (unsigned char)(n >> 8 * (2 - i));
	return p;
}

static void an_address_has_so_many_and_gets_them_back(void **state) {
	struct peer p = v4(1);
	(void)state;
	for (unsigned i = 0; i < ATTEMPTS_MOST; i++) {
		assert_int_equal(attempts_used(&p, 1000), i);
		assert_true(attempts_take(&p, 1000));
	}
	assert_false(attempts_take(&p, 1000));
	assert_false(attempts_take(&p, 1000 + ATTEMPTS_MS - 1));
	assert_true(attempts_take(&p, 1000 + ATTEMPTS_MS));
	assert_false(attempts_take(&p, 1000 + ATTEMPTS_MS));
	attempts_give_back(&p);
	assert_true(attempts_take(&p, 1000 + ATTEMPTS_MS));
	assert_int_equal(attempts_used(&p, 1000 + (ATTEMPTS_MOST + 1) * ATTEMPTS_MS), 0);
}

/* In 1,024 places for all, some of so many would have met. */
static void nobody_is_held_to_account_for_another(void **state) {
	(void)state;
	for (unsigned n = 100; n < 2100; n++) {
		struct peer p = v4(n);
		for (unsigned i = 0; i < ATTEMPTS_MOST; i++) (void)attempts_take(&p, 1000);
	}
	for (unsigned n = 10000; n < 12000; n++) {
		struct peer p = v4(n);
		if (!attempts_take(&p, 1000)) fail_msg("%u has had attempts of others", n);
	}
}

static void of_ipv6_a_network_is_an_address(void **state) {
	struct peer a = {0}, b = {0}, c = {0};
	(void)state;
	a.address.s6_addr[0] = b.address.s6_addr[0] = c.address.s6_addr[0] = 0x20;
	b.address.s6_addr[15] = 1;
	c.address.s6_addr[7] = 1;
	for (unsigned i = 0; i < ATTEMPTS_MOST; i++) assert_true(attempts_take(i % 2 ? &a : &b, 1000));
	assert_false(attempts_take(&a, 1000));
	assert_false(attempts_take(&b, 1000));
	assert_true(attempts_take(&c, 1000));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(an_address_has_so_many_and_gets_them_back),
									   cmocka_unit_test(nobody_is_held_to_account_for_another),
									   cmocka_unit_test(of_ipv6_a_network_is_an_address)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
