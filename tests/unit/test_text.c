/* test_text.c - numbers as text, and the lines of a text. */
#include "gatling/base/lines.h"
#include "gatling/base/slice.h"

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

static void slices_are_joined_in_their_order(void **state) {
	(void)state;
	char out[32];
	const struct slice name = SLICE("name"), absent = {0};
	const char *end = TEXT_JOIN(out, name, SLICE(": "), absent, SLICE(""), SLICE("value"));
	check_slice((struct slice){.at = out, .length = (size_t)(end - out)}, "name: value");
}

static void check_line(struct lines *lines, unsigned number, const char *text) {
	struct slice line;
	assert_true(lines_next(lines, &line));
	check_slice(line, text);
	assert_int_equal(lines->number, number);
}

static void a_line_ends_with_lf_or_crlf_and_is_trimmed(void **state) {
	(void)state;
	struct lines lines = lines_of(SLICE("\xEF\xBB\xBFone\n\t two \t\r\n\r\nthree\r \xEF\xBB\xBF\r\r\n\0\nlast"));
	struct slice line;
	check_line(&lines, 1, "one");
	check_line(&lines, 2, "two");
	check_line(&lines, 3, "");
	check_line(&lines, 4, "three\r \xEF\xBB\xBF\r");
	assert_true(lines_next(&lines, &line) && line.length == 1);
	check_line(&lines, 6, "last");
	assert_false(lines_next(&lines, &line));
	lines = lines_of(SLICE(""));
	assert_false(lines_next(&lines, &line));
}

static void empty_lines_and_comments_are_counted_and_skipped(void **state) {
	(void)state;
	struct lines lines = lines_of(SLICE("\xEF\xBB\xBF# one\n\n  #two\n three # four\n#\n"));
	struct slice line;
	assert_true(lines_next_entry(&lines, &line));
	check_slice(line, "three # four");
	assert_int_equal(lines.number, 4);
	assert_false(lines_next_entry(&lines, &line));
}

static void words_end_at_blanks_and_at_a_comment(void **state) {
	(void)state;
	struct slice line = SLICE(" one\t two#2  three # four"), word;
	static const char *const words[] = {"one", "two#2", "three"};
	for (size_t i = 0; i < COUNT(words); i++) {
		assert_true(lines_next_word(&line, &word));
		check_slice(word, words[i]);
	}
	assert_false(lines_next_word(&line, &word));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_of_every_length_are_written),
									   cmocka_unit_test(two_digits_are_written),
									   cmocka_unit_test(slices_are_joined_in_their_order),
									   cmocka_unit_test(a_line_ends_with_lf_or_crlf_and_is_trimmed),
									   cmocka_unit_test(empty_lines_and_comments_are_counted_and_skipped),
									   cmocka_unit_test(words_end_at_blanks_and_at_a_comment)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
