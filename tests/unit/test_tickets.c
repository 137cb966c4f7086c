/* test_tickets.c - keys of session tickets: the same for all threads, replaced in time, and not valid forever. */
#include "gatling/tls/tickets.h"
#include "tests/unit/check.h"

static void a_key_is_kept_for_a_period_and_opens_for_another(void **state) {
	struct ticket_key first, again, second, opened;
	const int64_t start = 1000;
	(void)state;
	assert_int_equal(tickets_seal_key(start, &first), 0);
	assert_int_equal(tickets_seal_key(start + TICKET_PERIOD_S - 1, &again), 0);
	assert_memory_equal(&first, &again, sizeof first);
	assert_int_equal(tickets_open_key(start + TICKET_PERIOD_S - 1, first.name, &opened), 1);

	assert_int_equal(tickets_seal_key(start + TICKET_PERIOD_S, &second), 0);
	assert_memory_not_equal(first.name, second.name, TICKET_NAME);
	assert_memory_not_equal(first.cipher, second.cipher, TICKET_KEY);
	assert_int_equal(tickets_open_key(start + TICKET_PERIOD_S, first.name, &opened), 2);
	assert_memory_equal(&opened, &first, sizeof first);
	assert_int_equal(tickets_open_key(start + TICKET_PERIOD_S, second.name, &opened), 1);

	assert_int_equal(tickets_open_key(start + 2 * TICKET_PERIOD_S, first.name, &opened), 0);
	assert_int_equal(tickets_open_key(start + 2 * TICKET_PERIOD_S, second.name, &opened), 2);
}

static void after_a_long_pause_no_old_key_opens(void **state) {
	struct ticket_key old, opened;
	const int64_t start = 100000000;
	(void)state;
	assert_int_equal(tickets_seal_key(start, &old), 0);
	assert_int_equal(tickets_open_key(start + 2 * TICKET_PERIOD_S, old.name, &opened), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_key_is_kept_for_a_period_and_opens_for_another),
									   cmocka_unit_test(after_a_long_pause_no_old_key_opens)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
