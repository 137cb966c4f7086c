/* test_shared_lines.c - a decoder with the dynamic table of HPACK has the same fields, whatever was sent before. */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "gatling/hpack/shared_lines.h"
#include "tests/unit/check.h"

enum { TEXT_MAX = 8192 };

static struct shared_lines *lines;
static nghttp2_hd_inflater *inflater;

static int set_up(void **state) {
	(void)state;
	lines = shared_lines_new();
	return lines ? nghttp2_hd_inflate_new(&inflater) : -1;
}

static int tear_down(void **state) {
	(void)state;
	shared_lines_free(lines);
	nghttp2_hd_inflate_del(inflater);
	return 0;
}

/* Checks that the decoder has these lines, sorted: shared ones come before the others. */
static void check_decoded(const char *block, const char *end, const char *expected) {
	char text[TEXT_MAX];
	const uint8_t *at = (const uint8_t *)block;
	size_t n = 0;
	for (int flags = 0; !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
		nghttp2_nv nv;
		const ssize_t used = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, at, (size_t)((const uint8_t *)end - at), 1);
		assert_true(used >= 0);
		at += used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s: %s\r\n", (char *)nv.name, (char *)nv.value);
	}
	nghttp2_hd_inflate_end_headers(inflater);
	check_slice((struct slice){.at = text, .length = n}, expected);
}

/* Adds the lines to a block, sends it, and checks what comes. Returns the length of the block. */
static size_t send_block(const char *text, struct dynamic_lines *dynamic, const char *expected) {
	char rest[HPACK_BOUND(TEXT_MAX)], out[HPACK_BOUND(TEXT_MAX)];
	struct ready_block block = {0};
	ready_block_add(&block, lines, slice_of(text), rest);
	const char *end = ready_block_put(out, &block, lines, dynamic);
	assert_true((size_t)(end - out) <= block.longest);
	check_decoded(out, end, expected);
	return (size_t)(end - out);
}

static void what_was_sent_is_an_index(void **state) {
	struct dynamic_lines dynamic = {0};
	const char *text = "Vary: Accept-Encoding\r\nETag: \"x\"\r\nX-Owner: a\r\n",
			   *expected = "vary: Accept-Encoding\r\nx-owner: a\r\netag: \"x\"\r\n";
	(void)state;
	const size_t first = send_block(text, &dynamic, expected);
	assert_int_equal(send_block("ETag: \"x\"\r\n", &dynamic, "etag: \"x\"\r\n") + 2,
					 send_block(text, &dynamic, expected));
	assert_true(first > 20);
}

/* Other connections have other tables. */
static void each_connection_has_its_own(void **state) {
	struct dynamic_lines dynamic = {0}, other = {0};
	nghttp2_hd_inflater *const one = inflater;
	(void)state;
	const size_t first = send_block("Server: gatling\r\n", &dynamic, "server: gatling\r\n");
	assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
	assert_int_equal(send_block("Server: gatling\r\n", &other, "server: gatling\r\n"), first);
	nghttp2_hd_inflate_del(inflater);
	inflater = one;
}

/* A client may have no table. */
static void nothing_is_referred_to_when_it_is_off(void **state) {
	struct dynamic_lines dynamic = {.off = true};
	(void)state;
	assert_int_equal(nghttp2_hd_inflate_change_table_size(inflater, 0), 0);
	char block[] = {0x20};
	check_decoded(block, block + 1, "");
	for (int i = 0; i < 3; i++) assert_true(send_block("Server: gatling\r\n", &dynamic, "server: gatling\r\n") > 5);
	assert_int_equal(nghttp2_hd_inflate_get_num_table_entries(inflater), 61);
}

/* Of lines as long as they may be, the table has just those that are remembered: any order decodes. */
static void lines_that_are_forgotten_are_sent_again(void **state) {
	enum { NAMES = 40, BLOCKS = 2000 };
	struct dynamic_lines dynamic = {0};
	(void)state;
	srand(1);
	for (int i = 0; i < BLOCKS; i++) {
		char text[TEXT_MAX], expected[TEXT_MAX];
		size_t n = 0, m = 0;
		for (int k = 1 + rand() % READY_BLOCK_LINES; k; k--) {
			const int name = rand() % NAMES;
			n += (size_t)snprintf(text + n, sizeof text - n, "X%02d: %0*d\r\n", name, SHARED_LINE_MAX - 5, name);
			m +=
				(size_t)snprintf(expected + m, sizeof expected - m, "x%02d: %0*d\r\n", name, SHARED_LINE_MAX - 5, name);
		}
		send_block(text, &dynamic, expected);
	}
}

/* Lines beyond the limits are sent as they are. */
static void what_is_too_much_is_not_shared(void **state) {
	struct dynamic_lines dynamic = {0};
	char text[TEXT_MAX], expected[TEXT_MAX];
	(void)state;
	for (int i = 0; i < 2 * SHARED_LINES_MAX; i++) {
		snprintf(text, sizeof text, "X: %d\r\n", i);
		snprintf(expected, sizeof expected, "x: %d\r\n", i);
		send_block(text, &dynamic, expected);
	}
	assert_true(send_block(text, &dynamic, expected) > 1); /* the last */
	snprintf(text, sizeof text, "X: %0*d\r\n", SHARED_LINE_MAX, 1);
	snprintf(expected, sizeof expected, "x: %0*d\r\n", SHARED_LINE_MAX, 1);
	assert_true(send_block(text, &dynamic, expected) > 1);
	assert_int_equal(send_block(text, &dynamic, expected), send_block(text, &dynamic, expected));
}

/* What is not ready refers to the same lines, and adds none to those of the worker. */
static void text_refers_to_shared_lines(void **state) {
	struct dynamic_lines dynamic = {0};
	char out[HPACK_BOUND(TEXT_MAX)];
	(void)state;
	send_block("Server: gatling\r\n", &dynamic, "server: gatling\r\n");
	for (int i = 0; i < 2; i++) {
		const char *end = shared_lines_put(out, SLICE("X: a\r\nServer: gatling\r\n"), lines, &dynamic);
		assert_int_equal(end - out, 5 + 1); /* a literal of two octets with their lengths, and an index */
		check_decoded(out, end, "x: a\r\nserver: gatling\r\n");
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_sent_is_an_index, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_connection_has_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_referred_to_when_it_is_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_that_are_forgotten_are_sent_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_too_much_is_not_shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(text_refers_to_shared_lines, set_up, tear_down)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
