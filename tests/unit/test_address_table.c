/* test_address_table.c - each address has its own tokens and counts, however many there are. */
#include "gatling/client/address_table.h"
#include "tests/unit/check.h"

enum { SETS = 2048 };

static const struct address_rate rate = {.interval_ns = 3000, .burst = 10};

static struct address_entry entries[SETS][ADDRESS_WAYS];
static struct address_table table = {.set = entries, .sets = SETS};

static int clear(void **state) {
	(void)state;
	memset(entries, 0, sizeof entries);
	return 0;
}

static void an_address_has_so_many_tokens_and_gets_them_back(void **state) {
	(void)state;
	for (unsigned i = 0; i < rate.burst; i++) {
		assert_int_equal(address_used(&table, 1, rate, 1000), i);
		assert_true(address_take(&table, 1, rate, 1000));
	}
	assert_false(address_take(&table, 1, rate, 1000));
	assert_false(address_take(&table, 1, rate, 1000 + rate.interval_ns - 1));
	assert_true(address_take(&table, 1, rate, 1000 + rate.interval_ns));
	assert_false(address_take(&table, 1, rate, 1000 + rate.interval_ns));
	address_give_back(&table, 1, rate);
	assert_true(address_take(&table, 1, rate, 1000 + rate.interval_ns));
	assert_int_equal(address_used(&table, 1, rate, 1000 + (rate.burst + 1) * rate.interval_ns), 0);
}

/* In a table with one entry for each hash, some of these addresses would collide. */
static void no_address_pays_for_another(void **state) {
	(void)state;
	for (unsigned n = 100; n < 4100; n++)
		for (unsigned i = 0; i < rate.burst; i++) (void)address_take(&table, n, rate, 1000);
	for (unsigned n = 10000; n < 14000; n++)
		if (!address_take(&table, n, rate, 1000)) fail_msg("%u pays for another", n);
}

static void a_million_addresses_do_not_crowd_out_what_is_held(void **state) {
	(void)state;
	for (unsigned n = 0; n < 100; n++) assert_true(address_hold(&table, n, ADDRESS_CONNECTIONS, 1));
	for (unsigned n = 1000; n < 1001000; n++) assert_true(address_take(&table, n, rate, n));
	for (unsigned n = 0; n < 100; n++) assert_false(address_hold(&table, n, ADDRESS_CONNECTIONS, 1));
}

static void what_is_held_is_limited_each_kind_for_itself(void **state) {
	(void)state;
	for (int i = 0; i < 3; i++) assert_true(address_hold(&table, 7, ADDRESS_CONNECTIONS, 3));
	assert_false(address_hold(&table, 7, ADDRESS_CONNECTIONS, 3));
	assert_true(address_hold(&table, 7, ADDRESS_REQUESTS, 1));
	assert_false(address_hold(&table, 7, ADDRESS_REQUESTS, 1));
	address_release(&table, 7, ADDRESS_CONNECTIONS, 2);
	assert_true(address_hold(&table, 7, ADDRESS_CONNECTIONS, 2));
	assert_false(address_hold(&table, 7, ADDRESS_CONNECTIONS, 2));
	address_release(&table, 7, ADDRESS_CONNECTIONS, 100); /* never below 0 */
	assert_true(address_hold(&table, 7, ADDRESS_CONNECTIONS, 1));
}

/* What is not counted cannot be limited. */
static void an_address_without_a_place_gets_nothing(void **state) {
	struct address_entry few[1][ADDRESS_WAYS] = {0};
	struct address_table small = {.set = few, .sets = 1};
	(void)state;
	for (unsigned n = 1; n <= ADDRESS_WAYS; n++) assert_true(address_hold(&small, n, ADDRESS_CONNECTIONS, 1));
	assert_false(address_hold(&small, 100, ADDRESS_CONNECTIONS, 1));
	assert_false(address_take(&small, 100, rate, 1000));
	address_release(&small, 1, ADDRESS_CONNECTIONS, 1);
	assert_true(address_take(&small, 100, rate, 1000));
	assert_true(address_hold(&small, 100, ADDRESS_CONNECTIONS, 1));
	assert_false(address_hold(&small, 1, ADDRESS_CONNECTIONS, 1));
}

static struct peer peer_from(const char *octets, size_t length, size_t at) {
	struct peer p = {0};
	memcpy(p.address.s6_addr + at, octets, length);
	return p;
}

static void a_network_of_ipv6_is_an_address(void **state) {
	struct peer a = peer_from("\x20\1\0\0\0\0\0\5\1", 9, 0), b = peer_from("\x20\1\0\0\0\0\0\5\2", 9, 0),
				c = peer_from("\x20\1\0\0\0\0\0\6\1", 9, 0);
	struct peer v4 = peer_from("\xff\xff\x0a\0\0\1", 6, 10), other = peer_from("\xff\xff\x0a\0\0\2", 6, 10);
	(void)state;
	assert_int_equal(peer_network(&a), peer_network(&b));
	assert_int_not_equal(peer_network(&a), peer_network(&c));
	assert_int_not_equal(peer_network(&v4), peer_network(&other));
	assert_int_not_equal(peer_network(&v4), peer_network(&a));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(an_address_has_so_many_tokens_and_gets_them_back, clear),
									   cmocka_unit_test_setup(no_address_pays_for_another, clear),
									   cmocka_unit_test_setup(a_million_addresses_do_not_crowd_out_what_is_held, clear),
									   cmocka_unit_test_setup(what_is_held_is_limited_each_kind_for_itself, clear),
									   cmocka_unit_test_setup(an_address_without_a_place_gets_nothing, clear),
									   cmocka_unit_test_setup(a_network_of_ipv6_is_an_address, clear)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
