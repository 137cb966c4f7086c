/* test_text.c - numbers as text. */
#include "gatling/base/text.h"

#include <inttypes.h>

#include "tests/unit/check.h"

static void check_number(uint64_t number) {
	char expected[32], out[32];
	(void)snprintf(expected, sizeof expected, "%" PRIu64, number);
	check_slice((struct slice){.at = out, .length = (size_t)(text_copy_number(out, number) - out)}, expected);
}

static void numbers_of_every_length_are_written(void **state) {
	(void)state;
	check_number(0);
	for (uint64_t n = 1; n <= UINT64_MAX / 10; n *= 10)
		for (uint64_t less = 0; less <= 1; less++) check_number(10 * n - less);
	check_number(UINT64_MAX);
	for (uint64_t n = 0; n < 20000; n++) check_number(n);
}

static void two_digits_are_written(void **state) {
	(void)state;
	char expected[8], out[8];
	for (unsigned n = 0; n < 100; n++) {
		(void)snprintf(expected, sizeof expected, "%02u", n);
		check_slice((struct slice){.at = out, .length = (size_t)(text_copy_two(out, n) - out)}, expected);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_of_every_length_are_written),
									   cmocka_unit_test(two_digits_are_written)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
