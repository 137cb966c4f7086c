/* test_condition.c - byte ranges, preconditions and dates. */
#include "tests/unit/check.h"

#include "gatling/http/date.h"
#include "gatling/http/precondition.h"
#include "gatling/http/range.h"

static struct range range[RANGES_MAX];

static int ranges(const char *value, uint64_t size) { return range_parse(slice_of(value), size, range); }

static void check_range(const char *value, uint64_t size, uint64_t first, uint64_t length) {
	if (ranges(value, size) != 1 || range[0].first != first || range[0].length != length)
		fail_msg("%s of %llu is %llu+%llu", value, (unsigned long long)size, (unsigned long long)range[0].first,
				 (unsigned long long)range[0].length);
}

static void single_ranges(void **state) {
	(void)state;
	check_range("bytes=0-99", 1000, 0, 100);
	check_range("bytes=0-0", 1000, 0, 1);
	check_range("bytes=10-10", 1000, 10, 1);
	check_range("bytes=990-", 1000, 990, 10);
	check_range("bytes=990-2000", 1000, 990, 10);
	check_range("bytes=-5", 1000, 995, 5);
	check_range("bytes=-1000", 1000, 0, 1000);
	check_range("Bytes=0-", 1000, 0, 1000);
	check_range("bytes= 1-2 ", 1000, 1, 2);
	check_range("bytes=,1-2,,", 1000, 1, 2);
	check_range("bytes=0-18446744073709551616", 1000, 0, 1000);
	check_range("bytes=0-99999999999999999999999999999", 1000, 0, 1000);
	check_range("bytes=9223372036854775800-9223372036854775801", INT64_MAX, INT64_MAX - 7, 2);
	check_range("bytes=-9223372036854775800", INT64_MAX, 7, INT64_MAX - 7);
}

static void a_suffix_longer_than_the_file_is_the_whole_file(void **state) {
	(void)state;
	check_range("bytes=-2000", 1000, 0, 1000);
	check_range("bytes=-99999999999999999999999", 1000, 0, 1000);
}

static void what_cannot_be_satisfied(void **state) {
	(void)state;
	assert_int_equal(ranges("bytes=1000-", 1000), -1);
	assert_int_equal(ranges("bytes=99999999999999999999-", 1000), -1);
	assert_int_equal(ranges("bytes=-0", 1000), -1);
	assert_int_equal(ranges("bytes=0-", 0), 0); /* all of it, which is empty */
	assert_int_equal(ranges("bytes=0-9", 0), 0);
	assert_int_equal(ranges("bytes=-5", 0), 0);
	assert_int_equal(ranges("bytes=1-", 0), -1);
	assert_int_equal(ranges("bytes=-0", 0), -1);
	assert_int_equal(ranges("bytes=1000-,2000-3000", 1000), -1);
}

static void what_is_ignored(void **state) {
	(void)state;
	static const char *const cases[] = {"",          "bytes",       "bytes=",        "bytes=,",
										"lines=0-1", "bytes=a-b",   "bytes=1",       "bytes=5-4",
										"bytes=-",   "bytes=--1",   "bytes=1-2x",    "bytes=0-1,x",
										"bytes 0-1", "bytes=0 - 1", "bytes=0-1;2-3", "bytes=0-599,500-999"};
	for (size_t i = 0; i < COUNT(cases); i++)
		if (ranges(cases[i], 1000) != 0) fail_msg("%s", cases[i]);
}

static void several_ranges_stay_in_their_order(void **state) {
	(void)state;
	assert_int_equal(ranges("bytes=500-599, -1,0-0", 1000), 3);
	assert_int_equal(range[0].first, 500);
	assert_int_equal(range[1].first, 999);
	assert_int_equal(range[2].length, 1);
	assert_int_equal(ranges("bytes=0-0,2000-,5-5", 1000), 2);
	assert_int_equal(range[1].first, 5);
}

static void a_set_may_cover_the_whole_file_but_no_more(void **state) {
	(void)state;
	assert_int_equal(ranges("bytes=0-499,500-999", 1000), 2);
	assert_int_equal(ranges("bytes=0-499,499-999", 1000), 0);
	assert_int_equal(ranges("bytes=0-,0-,0-", INT64_MAX), 0);
}

static void a_set_beyond_the_limit_is_ignored(void **state) {
	(void)state;
	char value[400] = "bytes=0-0";
	for (int i = 1; i < RANGES_MAX; i++) strcat(value, ",1-1");
	assert_int_equal(ranges(value, 1000), RANGES_MAX);
	strcat(value, ",2-2");
	assert_int_equal(ranges(value, 1000), 0);
}

static struct request q;
static struct validators v;

static int status(const char *fields) {
	char text[1024];
	v = (struct validators){
		.etag = SLICE("\"abc\""), .last_modified = 784111777, .date = SLICE("Sun, 06 Nov 1994 08:49:37 GMT")};
	int n = sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
	static char kept[1024];
	memcpy(kept, text, (size_t)n + 1);
	assert_int_equal(request_parse(&q, kept, (size_t)n), n);
	return precondition_status(&q, &v);
}

#define SAME "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER "Sun, 06 Nov 1994 08:49:38 GMT"
#define EARLIER "Sun, 06 Nov 1994 08:49:36 GMT"

static void preconditions_and_their_precedence(void **state) {
	(void)state;
	static const struct {
		const char *fields;
		int status;
	} cases[] = {
		{"", 0},
		{"If-None-Match: \"abc\"\r\n", 304},
		{"If-None-Match: W/\"abc\"\r\n", 304},
		{"If-None-Match: *\r\n", 304},
		{"If-None-Match: \"x\", \"a,b\" ,\"abc\"\r\n", 304},
		{"If-None-Match: \"x\"\r\nIf-None-Match: \"abc\"\r\n", 304},
		{"If-None-Match: \"ab\"\r\n", 0},
		{"If-None-Match: abc\r\n", 0},
		{"If-None-Match: \"abc\r\n", 0},
		{"If-None-Match:\r\n", 0},
		{"If-Match: \"abc\"\r\n", 0},
		{"If-Match: *\r\n", 0},
		{"If-Match: W/\"abc\"\r\n", 412},
		{"If-Match: \"x\"\r\n", 412},
		{"If-Match:\r\n", 412},
		{"If-Modified-Since: " SAME "\r\n", 304},
		{"If-Modified-Since: " LATER "\r\n", 304},
		{"If-Modified-Since: " EARLIER "\r\n", 0},
		{"If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 304},
		{"If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n", 304},
		{"If-Modified-Since: yesterday\r\n", 0},
		{"If-Modified-Since: " SAME "\r\nIf-Modified-Since: " SAME "\r\n", 0}, /* a list is not a date */
		{"If-Unmodified-Since: " SAME "\r\n", 0},
		{"If-Unmodified-Since: " EARLIER "\r\n", 412},
		{"If-Unmodified-Since: nonsense\r\n", 0},
		{"If-Unmodified-Since: " EARLIER "\r\nIf-Unmodified-Since: " EARLIER "\r\n", 0},
		{"If-None-Match: \"x\"\r\nIf-Modified-Since: " SAME "\r\n", 0},
		{"If-Match: \"abc\"\r\nIf-Unmodified-Since: " EARLIER "\r\n", 0},
		{"If-Match: \"x\"\r\nIf-None-Match: \"abc\"\r\n", 412},
		{"If-Match: \"abc\"\r\nIf-None-Match: \"abc\"\r\n", 304},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		if (status(cases[i].fields) != cases[i].status) fail_msg("%s", cases[i].fields);
}

static void if_range_wants_an_exact_validator(void **state) {
	(void)state;
	static const struct {
		const char *fields;
		bool counts;
	} cases[] = {
		{"", true},
		{"If-Range: \"abc\"\r\n", true},
		{"If-Range: W/\"abc\"\r\n", false},
		{"If-Range: \"x\"\r\n", false},
		{"If-Range: " SAME "\r\n", true},
		{"If-Range: Sunday, 06-Nov-94 08:49:37 GMT\r\n", true},
		{"If-Range: " LATER "\r\n", false},
		{"If-Range: " EARLIER "\r\n", false},
		{"If-Range: " SAME "\r\nIf-Range: " SAME "\r\n", false},
		{"If-Range: \"abc\"\r\nIf-Range: " EARLIER "\r\n", false},
		{"If-Range: x\r\n", false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(status(cases[i].fields), 0);
		if (precondition_range(&q, &v) != cases[i].counts) fail_msg("%s", cases[i].fields);
	}
}

static void a_date_of_the_present_second_is_not_strong(void **state) {
	(void)state;
	char date[DATE_LENGTH + 1], fields[100];
	time_t now;
	bool counts, counted;
	do {
		now = time(NULL);
		for (int ago = 0; ago < 2; ago++) {
			(void)date_format(date, now - ago);
			snprintf(fields, sizeof fields, "If-Range: %s\r\n", date);
			(void)status(fields);
			v = (struct validators){.last_modified = now - ago, .date = slice_of(date)};
			counts = precondition_range(&q, &v);
			if (!ago) counted = counts;
		}
	} while (time(NULL) != now);
	assert_false(counted);
	assert_true(counts);
}

static void without_a_date_of_its_own_conditions_with_dates_are_ignored(void **state) {
	(void)state;
	static const char *const fields[] = {"If-Modified-Since: " LATER, "If-Unmodified-Since: " EARLIER};
	char text[200];
	for (size_t i = 0; i < COUNT(fields); i++) {
		snprintf(text, sizeof text, "%s\r\nIf-Range: Thu, 01 Jan 1970 00:00:00 GMT\r\n", fields[i]);
		(void)status(text);
		v.date = (struct slice){0};
		v.last_modified = 0;
		assert_int_equal(precondition_status(&q, &v), 0);
		assert_false(precondition_range(&q, &v));
	}
}

static void until_the_entity_tag_is_known_the_exact_date_stands_for_one_that_it_may_be(void **state) {
	(void)state;
	static const struct {
		const char *fields;
		int status;
		enum etag_use use;
	} cases[] = {
		{"", 0, ETAG_SENT},
		{"Range: bytes=0-1\r\n", 0, ETAG_UNUSED},
		{"If-Modified-Since: " SAME "\r\n", 304, ETAG_SENT},
		{"If-Modified-Since: " LATER "\r\n", 304, ETAG_SENT},
		{"If-None-Match: \"a-9\"\r\nIf-Modified-Since: " SAME "\r\n", 304, ETAG_USEFUL},
		{"If-None-Match: \"x\", W/\"a-9\"\r\nIf-Modified-Since: " SAME "\r\n", 304, ETAG_USEFUL},
		{"If-None-Match: \"a-9\"\r\nIf-Modified-Since: " LATER "\r\n", 0, ETAG_USEFUL}, /* older files may come back */
		{"If-None-Match: \"a-9\"\r\nIf-Modified-Since: " EARLIER "\r\n", 0, ETAG_USEFUL},
		{"If-None-Match: \"a-9\"\r\nIf-Modified-Since: " SAME "\r\nIf-Modified-Since: " SAME "\r\n", 0, ETAG_AWAITED},
		{"If-None-Match: \"a-9\"\r\nIf-Modified-Since: x\r\n", 0, ETAG_AWAITED},
		{"If-None-Match: \"a-9\"\r\n", 0, ETAG_AWAITED},
		{"If-None-Match: \"a-8\"\r\nIf-Modified-Since: " SAME "\r\n", 0, ETAG_SENT}, /* of another size */
		{"If-None-Match: \"a-9-gz\"\r\nIf-Modified-Since: " SAME "\r\n", 0, ETAG_SENT},
		{"If-None-Match: \"abc\"\r\n", 0, ETAG_SENT},
		{"If-None-Match: *\r\n", 304, ETAG_SENT},
		{"If-Match: *\r\n", 0, ETAG_SENT},
		{"If-Match: \"a-9\"\r\n", 412, ETAG_AWAITED},
		{"If-Match: \"a-8\"\r\n", 412, ETAG_SENT},
		{"If-Match: W/\"a-9\"\r\n", 412, ETAG_SENT},
		{"If-Match: \"a-9\"\r\nIf-Unmodified-Since: " SAME "\r\n", 412, ETAG_AWAITED},
		{"Range: bytes=0-1\r\nIf-Range: \"a-9\"\r\n", 0, ETAG_AWAITED},
		{"Range: bytes=0-1\r\nIf-Range: \"a-8\"\r\n", 0, ETAG_UNUSED},
		{"Range: bytes=0-1\r\nIf-Range: W/\"a-9\"\r\n", 0, ETAG_UNUSED},
		{"Range: bytes=0-1\r\nIf-Range: " SAME "\r\n", 0, ETAG_UNUSED},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)status(cases[i].fields);
		v.etag = (struct slice){0};
		v.etag_end = SLICE("-9\"");
		if (precondition_status(&q, &v) != cases[i].status || precondition_etag_use(&q, &v) != cases[i].use)
			fail_msg("%s", cases[i].fields);
	}
	(void)status("If-None-Match: \"abc\"\r\nIf-Modified-Since: " SAME "\r\n");
	v.etag = (struct slice){0}; /* nothing is known: a smaller file, which is hashed at once */
	assert_int_equal(precondition_status(&q, &v), 0);
	assert_int_equal(precondition_etag_use(&q, &v), ETAG_AWAITED);
}

static void dates_are_read_in_three_forms_and_written_in_one(void **state) {
	(void)state;
	time_t time;
	static const char *const bad[] = {"",
									  "x",
									  "Sun, 99 Nov 1994 08:49:37 GMT",
									  "Sun, 06 Foo 1994 08:49:37 GMT",
									  "Sun, 06 Nov 1994 08:49:37 PST",
									  "Sun, 06 Nov 94 08:49:37 GMT",
									  "Sun Nov  6 08:49:37 94",
									  "Sun, 06 Nov 1994 08:49:37",
									  SAME " x"};
	for (size_t i = 0; i < COUNT(bad); i++)
		if (date_parse(slice_of(bad[i]), &time)) fail_msg("%s", bad[i]);
	for (time_t t = 0; t < 4102444800; t += 86400 * 17 + 3601) { /* until 2100 */
		char text[64];
		size_t n = date_format(text, t);
		assert_true(date_parse((struct slice){.at = text, .length = n}, &time));
		assert_int_equal(time, t);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_ranges),
		cmocka_unit_test(a_suffix_longer_than_the_file_is_the_whole_file),
		cmocka_unit_test(what_cannot_be_satisfied),
		cmocka_unit_test(what_is_ignored),
		cmocka_unit_test(several_ranges_stay_in_their_order),
		cmocka_unit_test(a_set_may_cover_the_whole_file_but_no_more),
		cmocka_unit_test(a_set_beyond_the_limit_is_ignored),
		cmocka_unit_test(preconditions_and_their_precedence),
		cmocka_unit_test(if_range_wants_an_exact_validator),
		cmocka_unit_test(a_date_of_the_present_second_is_not_strong),
		cmocka_unit_test(without_a_date_of_its_own_conditions_with_dates_are_ignored),
		cmocka_unit_test(until_the_entity_tag_is_known_the_exact_date_stands_for_one_that_it_may_be),
		cmocka_unit_test(dates_are_read_in_three_forms_and_written_in_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
