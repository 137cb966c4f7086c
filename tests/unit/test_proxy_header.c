/* test_proxy_header.c - the PROXY protocol, in one piece and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gatling/base/slice.h"
#include "gatling/client/proxy_header.h"

static struct proxy_header header;

/* Parses data with a byte behind it, and checks that all shorter parts are incomplete. */
static int parse(struct slice data) {
	char text[4096];
	memcpy(text, data.at, data.length);
	text[data.length] = 'G';
	int whole = proxy_header_parse(&header, text, data.length + 1);
	struct proxy_header part;
	for (size_t n = 0; whole > 0 && n < data.length; n++) {
		assert_int_equal(proxy_header_parse(&part, text, n), 0);
		assert_in_range(proxy_header_lacks(text, n), 1, data.length - n);
	}
	if (whole > 0) assert_int_equal(whole, data.length);
	return whole;
}

static void assert_client(const char *address) {
	char text[PEER_MAX + 1];
	text[peer_format(text, &header.client)] = '\0';
	assert_string_equal(text, address);
}

static void a_line_has_the_address_of_the_client(void **state) {
	(void)state;
	assert_true(parse(SLICE("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n")) > 0);
	assert_client("192.0.2.1");
	assert_true(parse(SLICE("PROXY TCP6 2001:db8::1 2001:db8::2 65535 80\r\n")) > 0);
	assert_client("2001:db8::1");
	assert_false(header.own || header.tls);
	assert_true(parse(SLICE("PROXY UNKNOWN\r\n")) > 0 && header.own);
	assert_true(parse(SLICE("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n")) > 0 && header.own);
}

static void a_line_that_is_wrong_is_refused(void **state) {
	static const struct slice wrong[] = {
		SLICE("GET / HTTP/1.1\r\n"),
		SLICE("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n"),
		SLICE("PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n"),
		SLICE("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 1\r\n"),
		SLICE("PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n"),
		SLICE("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"),
		SLICE("PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n"),
		SLICE("PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n"),
		SLICE("PROXY UNKNOWNX\r\n"),
		SLICE("PROXY TCP41.2.3.5 1.1.1.1 1 2\r\n"),
		SLICE("PROXY TCP4  192.0.2.1 198.51.100.1 1 2\r\n"),
		SLICE("PROXY TCP4 192.0.2.1 198.51.100.1 +1 2\r\n"),
		SLICE("PROXY TCP6 :: ::1 1 2\r\n"),
		SLICE("PROXY \r\n"),
		SLICE("PROXY TCP4 192.0.2.1\0 198.51.100.1 1 2\r\n"),
		SLICE(
			"PROXY UNKNOWN "
			"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n"),
	};
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_int_equal(parse(wrong[i]), -1);
}

#define BINARY "\r\n\r\n\0\r\nQUIT\n"

static void a_binary_header_has_the_address_and_tls(void **state) {
	(void)state;
	assert_true(parse(SLICE(BINARY "\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb")) > 0);
	assert_client("192.0.2.1");
	assert_false(header.tls);
	/* a value of an unknown type, then one of TLS: client, verify */
	assert_true(parse(SLICE(BINARY "\x21\x11\0\x18\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb"
								   "\x04\0\x01x\x20\0\x05\x01\0\0\0\0")) > 0);
	assert_true(header.tls);
	assert_true(parse(SLICE(BINARY "\x21\x21\0\x24"
								   "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
								   "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\0\x01\0\x50")) > 0);
	assert_client("2001:db8::1");
	assert_true(parse(SLICE(BINARY "\x20\0\0\0")) > 0 && header.own);
	assert_true(parse(SLICE(BINARY "\x21\0\0\x02xx")) > 0 && header.own && !header.tls);
	assert_true(parse(SLICE(BINARY "\x21\0\0\x08\x20\0\x05\x01\0\0\0\0")) > 0 && header.own && header.tls);
}

static void a_binary_header_that_is_wrong_is_refused(void **state) {
	static const struct slice wrong[] = {
		SLICE(BINARY "\x31\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb"), /* version 3 */
		SLICE(BINARY "\x22\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb"), /* an unknown command */
		SLICE(BINARY "\x21\x12\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb"), /* UDP */
		SLICE(BINARY "\x21\x11\0\x08\xc0\0\x02\x01\xc6\x33\x64\x01"),                 /* too short for its family */
		SLICE(BINARY
			  "\x21\x11\0\x0f\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb\x20\0\x05"), /* a value past its end */
		SLICE(BINARY "\x21\x11\xff\xff"),
	};
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_int_equal(parse(wrong[i]), -1);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_line_has_the_address_of_the_client),
									   cmocka_unit_test(a_line_that_is_wrong_is_refused),
									   cmocka_unit_test(a_binary_header_has_the_address_and_tls),
									   cmocka_unit_test(a_binary_header_that_is_wrong_is_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
