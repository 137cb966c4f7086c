/* test_forwarded.c - the client's address from proxies, in a list that the client may have begun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gatling/client/forwarded.h"

static struct trusted_proxies trusted;

static int trust(void **state) {
	(void)state;
	trusted.x_forwarded_for.count = trusted.forwarded.count = 1;
	return peer_net_parse("10.0.0.0/8", &trusted.x_forwarded_for.net[0]) &&
				   peer_net_parse("2001:db8:ffff::/48", &trusted.forwarded.net[0])
			   ? 0
			   : -1;
}

/* Checks the client's address, given a list in each of several lines; NULL: the address is unknown. */
static void assert_client(enum forwarding by, const char *const *lines, unsigned count, const char *expected) {
	struct request q;
	struct peer client;
	char text[PEER_MAX + 1];
	assert_int_equal(request_begin(&q, SLICE("GET"), SLICE("/")), 0);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(
			request_add(&q, by == FORWARDING_FORWARDED ? FIELD_FORWARDED : FIELD_X_FORWARDED_FOR, slice_of(lines[i])),
			0);
	bool found = forwarded_client(&trusted, by, &q, &client);
	if (found) text[peer_format(text, &client)] = '\0';
	if (!expected) assert_false(found);
	else assert_true(found);
	if (expected) assert_string_equal(text, expected);
}

static void assert_x(const char *list, const char *expected) {
	assert_client(FORWARDING_X_FORWARDED_FOR, &list, 1, expected);
}

static void assert_forwarded(const char *list, const char *expected) {
	assert_client(FORWARDING_FORWARDED, &list, 1, expected);
}

static void addresses_come_in_all_forms(void **state) {
	(void)state;
	assert_x("192.0.2.1", "192.0.2.1");
	assert_x("192.0.2.1:4711", "192.0.2.1");
	assert_x("2001:db8::1", "2001:db8::1");
	assert_x("[2001:db8::1]", "2001:db8::1");
	assert_x("[2001:db8::1]:4711", "2001:db8::1");
	assert_x("::ffff:192.0.2.1", "192.0.2.1");
	assert_forwarded("for=192.0.2.1", "192.0.2.1");
	assert_forwarded("For=\"[2001:db8::1]:4711\";proto=https;by=203.0.113.43", "2001:db8::1");
	assert_forwarded("proto=https ; for=\"192.0.2.1:80\"", "192.0.2.1");
}

static void what_is_no_address_is_nobody(void **state) {
	(void)state;
	const char *const texts[] = {"",    "unknown", "_hidden", "192.0.2",     "192.0.2.1x", "[2001:db8::1",  "[]",
								 "[::", "::",      ":80",     "192.0.2.1/8", "[::1]x",     "\"192.0.2.1\"", ","};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_x(texts[i], NULL);
	const char *const elements[] = {"192.0.2.1", "for=", "for=\"", "for=unknown", "proto=https", "fort=192.0.2.1"};
	for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) assert_forwarded(elements[i], NULL);
	assert_client(FORWARDING_X_FORWARDED_FOR, NULL, 0, NULL);
}

static void what_a_client_puts_in_front_is_not_believed(void **state) {
	(void)state;
	assert_x("203.0.113.9, 192.0.2.1", "192.0.2.1");
	assert_x("10.0.0.1,192.0.2.1", "192.0.2.1");
	assert_x("\"203.0.113.9, 192.0.2.1", "192.0.2.1");
	assert_forwarded("for=203.0.113.9, for=192.0.2.1", "192.0.2.1");
	assert_forwarded("for=\"203.0.113.9, for=192.0.2.1", "192.0.2.1");
	assert_forwarded("for=\"\\\", for=192.0.2.1;host=\"a\"", "192.0.2.1");
	/* a Host that a proxy passes on */
	assert_forwarded("for=192.0.2.1;host=\"a,for=203.0.113.9\"", "192.0.2.1");
	assert_forwarded("for=192.0.2.1;host=\"a;for=203.0.113.9\"", "192.0.2.1");
	assert_forwarded("host=\"a;for=203.0.113.9\";for=192.0.2.1", "192.0.2.1");
	const char *const lines[] = {"203.0.113.9", "192.0.2.1"};
	assert_client(FORWARDING_X_FORWARDED_FOR, lines, 2, "192.0.2.1");
}

static void proxies_that_are_trusted_are_passed_over(void **state) {
	(void)state;
	assert_x("192.0.2.1, 10.1.2.3, 10.0.0.1", "192.0.2.1");
	assert_x("203.0.113.9, 192.0.2.1, 10.0.0.1", "192.0.2.1");
	assert_x("203.0.113.9, 2001:db8:ffff::1", "2001:db8:ffff::1"); /* this proxy is only trusted for the other field */
	assert_x("unknown, 10.0.0.1", "10.0.0.1");                     /* as far as known */
	assert_x("10.0.0.2, 10.0.0.1", "10.0.0.2");                    /* a client in the trusted network */
	assert_forwarded("for=192.0.2.1, for=\"[2001:db8:ffff::1]\"", "192.0.2.1");
	assert_forwarded("for=203.0.113.9, for=10.0.0.1", "10.0.0.1");
	const char *const lines[] = {"192.0.2.1", "10.0.0.2, 10.0.0.1"};
	assert_client(FORWARDING_X_FORWARDED_FOR, lines, 2, "192.0.2.1");
}

static void a_chain_ends_somewhere(void **state) {
	(void)state;
	char list[32 * 16];
	size_t n = (size_t)snprintf(list, sizeof list, "192.0.2.1");
	for (int i = 1; i < FORWARDED_HOPS_MAX; i++) n += (size_t)snprintf(list + n, sizeof list - n, ", 10.0.0.1");
	assert_x(list, "192.0.2.1");
	snprintf(list + n, sizeof list - n, ", 10.0.0.9");
	assert_x(list, "10.0.0.1");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_come_in_all_forms),
		cmocka_unit_test(what_is_no_address_is_nobody),
		cmocka_unit_test(what_a_client_puts_in_front_is_not_believed),
		cmocka_unit_test(proxies_that_are_trusted_are_passed_over),
		cmocka_unit_test(a_chain_ends_somewhere),
	};
	return cmocka_run_group_tests(tests, trust, NULL);
}
