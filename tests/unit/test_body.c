/* test_body.c - where request bodies end, however their bytes arrive. */
#include "tests/unit/check.h"

#include "gatling/http/body.h"

static struct body body;

static void start(enum body_framing framing, uint64_t length) {
	struct request q = {.framing = framing, .content_length = length};
	body_start(&body, &q);
}

/* Feeds text in pieces of n bytes. Returns how many bytes were used, or the error. */
static int feed(const char *text, size_t n) {
	size_t at = 0, length = strlen(text);
	while (at < length && body_pending(&body)) {
		size_t piece = length - at < n ? length - at : n;
		int used = body_skip(&body, text + at, piece);
		if (used < 0) return used;
		at += (size_t)used;
	}
	return (int)at;
}

static void no_body_is_over_at_once(void **state) {
	(void)state;
	start(BODY_NONE, 0);
	assert_false(body_pending(&body));
	assert_int_equal(body_skip(&body, "GET", 3), 0);
}

static void a_body_of_known_length_ends_there(void **state) {
	(void)state;
	for (size_t n = 1; n < 9; n++) {
		start(BODY_LENGTH, 5);
		assert_int_equal(feed("12345GET", n), 5);
		assert_false(body_pending(&body));
	}
}

static void chunks_end_behind_the_trailer_in_pieces_of_any_size(void **state) {
	(void)state;
	static const char *const cases[] = {
		"0\r\n\r\n",
		"3\r\nabc\r\n0\r\n\r\n",
		"003\r\nabc\r\n000\r\n\r\n",
		"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
		"3;name=value;x=\"y\"\r\nabc\r\n0;last\r\n\r\n",
		"3 ; name\r\nabc\r\n0\r\n\r\n",
		"3 ; name = value ;other\t=\t\"a\\\"b; \xe9\" ; x\r\nabc\r\n0;y=\"\"\r\n\r\n",
		"3\r\n\r\n\r\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[200];
		sprintf(text, "%sGET /", cases[i]);
		for (size_t n = 1; n < strlen(text); n++) {
			start(BODY_CHUNKED, 0);
			if (feed(text, n) != (int)strlen(cases[i]) || body_pending(&body)) fail_msg("%s by %zu", cases[i], n);
		}
	}
}

static void broken_chunks_are_refused(void **state) {
	(void)state;
	static const char *const cases[] = {
		"\r\n",           "g\r\n",
		"-1\r\n",         "+1\r\n",
		" 1\r\n",         "0x1\r\n",
		";x\r\n",         "1\n",
		"1\rx",           "1\r\nab",
		"1\r\na\n",       "1\r\na\rb",
		"0\r\n\n",        "0\r\nT: x\n",
		"0\r\nT: x\r\r",  "0\r\n\r\r",
		"1;\x01\r\n",     "0\r\nT: \x01\r\n",
		"1;a\nb",         "5 6\r\n",
		"5 junk\r\n",     "5\tx\r\n",
		"5 \r\n",         "5;\x7f\r\n",
		"0\r\nfoo\r\n",   "0\r\n x: y\r\n",
		"0\r\na : b\r\n", "0\r\na\x7fz: x\r\n",
		"0\r\n: x\r\n",   "0\r\na: \x7f\r\n",
		"1;\r\n",         "1;;\r\n",
		"1;=x\r\n",       "1;a=\r\n",
		"1;a b\r\n",      "1;a=b c\r\n",
		"1;a=\"b\r\n",    "1;a=\"b\"c\r\n",
		"1;a \r\n",       "1;a=b \r\n",
		"1;a=b=c\r\n",    "1=a\r\n",
		"1;a=\"\\\r\n",   "1;a(b\r\n",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t n = 1; n < 5; n++) {
			start(BODY_CHUNKED, 0);
			if (feed(cases[i], n) != -400) fail_msg("%s by %zu", cases[i], n);
		}
	}
}

static void too_much_is_refused(void **state) {
	(void)state;
	start(BODY_CHUNKED, 0);
	assert_int_equal(feed("100001\r\n", 1), -413);
	start(BODY_CHUNKED, 0);
	assert_int_equal(feed("ffffffffffffffffffffffff\r\n", 1), -413);
	start(BODY_CHUNKED, 0);
	assert_int_equal(feed("10000000000000000\r\n", 100), -413);

	/* in many chunks, each small */
	start(BODY_CHUNKED, 0);
	static char chunk[65536 + 16];
	int n = sprintf(chunk, "10000\r\n");
	memset(chunk + n, 'x', 65536);
	sprintf(chunk + n + 65536, "\r\n");
	for (int i = 0; i < BODY_MAX / 65536; i++) assert_int_equal(feed(chunk, 100000), (int)strlen(chunk));
	assert_int_equal(feed("1\r\nx\r\n", 100), -413);
}

static void endless_lines_are_refused(void **state) {
	(void)state;
	static char text[TRAILER_MAX + 100];
	memset(text, '0', CHUNK_LINE_MAX + 2);
	start(BODY_CHUNKED, 0);
	assert_int_equal(feed(text, 7), -400);
	memset(text, 'x', CHUNK_LINE_MAX + 2);
	memcpy(text, "1;", 2);
	start(BODY_CHUNKED, 0);
	assert_int_equal(feed(text, 7), -400);
	memset(text, 'x', TRAILER_MAX + 10);
	memcpy(text, "0\r\n", 3);
	start(BODY_CHUNKED, 0);
	assert_int_equal(feed(text, 7), -400);
}

/* Feeds a line with n filler bytes: a trailer, or the size of a chunk. Returns 0, or -400 if it is refused. */
static int feed_line(const char *before, char filler, size_t n, const char *after) {
	static char text[TRAILER_MAX + 100];
	size_t start_length = strlen(before);
	memcpy(text, before, start_length);
	memset(text + start_length, filler, n);
	strcpy(text + start_length + n, after);
	start(BODY_CHUNKED, 0);
	return feed(text, 1000) == (int)strlen(text) && !body_pending(&body) ? 0 : -400;
}

static void lines_are_as_long_as_they_may_be(void **state) {
	(void)state;
	assert_int_equal(feed_line("", '0', CHUNK_LINE_MAX, "\r\n\r\n"), 0);
	assert_int_equal(feed_line("", '0', CHUNK_LINE_MAX + 1, "\r\n\r\n"), -400);
	assert_int_equal(feed_line("0;", 'x', CHUNK_LINE_MAX - 2, "\r\n\r\n"), 0);
	assert_int_equal(feed_line("0;", 'x', CHUNK_LINE_MAX - 1, "\r\n\r\n"), -400);
	assert_int_equal(feed_line("0\r\nT:", 'x', TRAILER_MAX - 6, "\r\n\r\n"), 0);
	assert_int_equal(feed_line("0\r\nT:", 'x', TRAILER_MAX - 5, "\r\n\r\n"), -400);
}

static void what_is_counted_starts_anew_with_each_chunk(void **state) {
	(void)state;
	start(BODY_CHUNKED, 0);
	for (int i = 0; i < 2 * CHUNK_LINE_MAX; i++) assert_int_equal(feed("1;x\r\nx\r\n", 100), 8);
	assert_int_equal(feed("0\r\n\r\n", 100), 5);
	assert_false(body_pending(&body));
}

static void many_trailers_are_refused(void **state) {
	(void)state;
	int result = 0;
	start(BODY_CHUNKED, 0);
	feed("0\r\n", 3);
	for (int i = 0; i < 2000 && result >= 0; i++) result = feed("T: xxxx\r\n", 100);
	assert_int_equal(result, -400);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_body_is_over_at_once),
		cmocka_unit_test(a_body_of_known_length_ends_there),
		cmocka_unit_test(chunks_end_behind_the_trailer_in_pieces_of_any_size),
		cmocka_unit_test(broken_chunks_are_refused),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(endless_lines_are_refused),
		cmocka_unit_test(lines_are_as_long_as_they_may_be),
		cmocka_unit_test(what_is_counted_starts_anew_with_each_chunk),
		cmocka_unit_test(many_trailers_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
