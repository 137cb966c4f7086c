/* test_hpack.c - nghttp2 decodes header blocks to the same fields. */
#include <nghttp2/nghttp2.h>

#include "gatling/hpack/hpack.h"
#include "gatling/hpack/huffman.h"
#include "tests/unit/check.h"

enum { BLOCK_MAX = 65536 };

/* Checks that a block decodes to these "name: value" lines. */
static void check_block(const char *block, size_t length, const char *expected) {
	nghttp2_hd_inflater *inflater;
	static char text[BLOCK_MAX];
	const uint8_t *at = (const uint8_t *)block;
	size_t n = 0;
	int flags = 0;
	assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t used = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, at, length, 1);
		assert_true(used >= 0);
		at += used;
		length -= (size_t)used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s: %s\r\n", (char *)nv.name, (char *)nv.value);
	}
	nghttp2_hd_inflate_del(inflater);
	check_slice((struct slice){.at = text, .length = n}, expected);
}

static void lines_become_fields_with_names_in_lower_case(void **state) {
	char out[BLOCK_MAX];
	const char *lines =
		"Content-Length: 12\r\nETag: \"x\"\r\nX-Content-Type-Options: nosniff\r\nServer: gatling\r\nX: \r\n";
	(void)state;
	size_t n = hpack_fields(slice_of(lines), out);
	assert_true(n <= HPACK_BOUND(strlen(lines)));
	check_block(out, n,
				"content-length: 12\r\netag: \"x\"\r\nx-content-type-options: nosniff\r\nserver: gatling\r\nx: \r\n");
}

/* At some lengths, the encoded length takes another octet (RFC 7541, section 5.1). */
static void values_of_every_length(void **state) {
	static const size_t lengths[] = {0, 1, 126, 127, 128, 254, 255, 256, 16509, 16510, 16511, 32000};
	static char line[BLOCK_MAX], expected[BLOCK_MAX], out[BLOCK_MAX];
	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		int length = (int)lengths[i];
		memset(expected, 'v', sizeof expected);
		snprintf(line, sizeof line, "Location: %.*s\r\n", length, expected);
		size_t n = hpack_fields(slice_of(line), out);
		assert_true(n <= HPACK_BOUND(strlen(line)));
		line[0] = 'l';
		check_block(out, n, line);
	}
}

/* With up to ten copies of a field, for lengths that include those with the most overhead. */
static void a_block_never_exceeds_its_bound(void **state) {
	static const size_t names[] = {1, 5, 126, 127, 254, 255, 300}, values[] = {0, 1, 126, 127, 254, 255, 383, 16511};
	static char lines[4 * BLOCK_MAX], out[5 * BLOCK_MAX], filler[BLOCK_MAX];
	(void)state;
	memset(filler, 'x', sizeof filler);
	for (size_t i = 0; i < COUNT(names); i++) {
		for (size_t j = 0; j < COUNT(values); j++) {
			size_t n = 0;
			for (int count = 1; count <= 10; count++) {
				n += (size_t)snprintf(lines + n, sizeof lines - n, "%.*s: %.*s\r\n", (int)names[i], filler,
									  (int)values[j], filler);
				size_t length = hpack_fields((struct slice){.at = lines, .length = n}, out);
				if (length > HPACK_BOUND(n)) fail_msg("%d of %zu and %zu octets", count, names[i], values[j]);
			}
		}
	}
}

/* Each octet after each of a few others, whose codes end at other bits of a byte. */
static void the_huffman_code_has_every_octet(void **state) {
	enum { LOCATION = 0x1f }; /* 46 less 15, behind four bits (RFC 7541, section 5.1) */
	static const char before[] = "\"aX&<{";
	(void)state;
	for (size_t i = 0; i < sizeof before; i++) {
		for (int c = 0; c < 256; c++) {
			const char text[] = {before[i], (char)c, before[i]};
			const struct slice value = {.at = text, .length = sizeof text};
			char out[32] = {0x0f, LOCATION, (char)(0x80 | huffman_length(value))};
			const size_t length = (size_t)(huffman_put(out + 3, value) - out);
			assert_int_equal(length, 3 + huffman_length(value));
			nghttp2_hd_inflater *inflater;
			nghttp2_nv nv;
			int flags = 0;
			assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
			assert_int_equal(nghttp2_hd_inflate_hd2(inflater, &nv, &flags, (uint8_t *)out, length, 1), length);
			assert_int_equal(nv.valuelen, sizeof text);
			assert_memory_equal(nv.value, text, sizeof text);
			nghttp2_hd_inflate_del(inflater);
		}
	}
}

static void text_takes_no_more_than_it_is_long(void **state) {
	char out[BLOCK_MAX];
	(void)state;
	assert_int_equal(hpack_fields(SLICE("Server: gatling\r\n"), out), 2 + 1 + huffman_length(SLICE("gatling")));
	assert_true(huffman_length(SLICE("gatling")) < strlen("gatling"));
	assert_int_equal(hpack_fields(SLICE("Server: <<<<\r\n"), out), 2 + 1 + strlen("<<<<"));
}

static void every_status(void **state) {
	(void)state;
	for (int status = 100; status < 600; status++) {
		char out[HPACK_STATUS], expected[32];
		size_t n = hpack_status(status, out);
		assert_true(n <= HPACK_STATUS);
		snprintf(expected, sizeof expected, ":status: %d\r\n", status);
		check_block(out, n, expected);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(lines_become_fields_with_names_in_lower_case),
									   cmocka_unit_test(values_of_every_length),
									   cmocka_unit_test(a_block_never_exceeds_its_bound),
									   cmocka_unit_test(the_huffman_code_has_every_octet),
									   cmocka_unit_test(text_takes_no_more_than_it_is_long),
									   cmocka_unit_test(every_status)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
