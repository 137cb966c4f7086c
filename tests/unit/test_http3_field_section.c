/* test_http3_field_section.c - field sections become requests, and a wrong one does not keep others from that; the
 * lines that are encoded are those that are decoded. */
#include <nghttp3/nghttp3.h>

#include "gatling/hpack/hpack.h"
#include "gatling/hpack/qpack.h"
#include "gatling/http3/field_section.h"
#include "tests/unit/check.h"

#define GET "\0\0\xd1\xd7\xc1\x50\x09localhost" /* entries 17, 23, 1 and 0 of the static table */

static struct field_decoder *decoder;
static struct request request;

static int decode(struct slice section) {
	static char text[REQUEST_TEXT];
	struct priority priority = PRIORITY_DEFAULT;
	return field_section_decode(decoder, section, false, false, text, &request, &priority);
}

static int set_up(void **state) {
	(void)state;
	decoder = field_decoder_new();
	return decoder ? 0 : -1;
}

static int tear_down(void **state) {
	(void)state;
	field_decoder_free(decoder);
	return 0;
}

static void assert_get(void) {
	assert_int_equal(decode(SLICE(GET)), 0);
	assert_true(slice_equal(request.line, SLICE("GET / HTTP/3.0")));
	assert_true(slice_equal(request.host, SLICE("localhost")));
}

static void a_section_is_a_request(void **state) {
	(void)state;
	assert_get();
	assert_get();
}

static void a_wrong_section_is_of_its_connection_alone(void **state) {
	(void)state;
	const struct slice wrong[] = {SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), SLICE("\2\0\x80"),
								  SLICE(""), SLICE("\0\0\xd1\xff\xff\xff"), SLICE("\0\0\x50\x7f")};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(decode(wrong[i]), FIELD_SECTION_WRONG);
		assert_get();
	}
}

static void a_section_that_is_too_large_is_of_its_stream_alone(void **state) {
	(void)state;
	const struct slice large[] = {SLICE("\0\0\x27\xfa\x01"), /* a name of 257 octets */
								  SLICE("\0\0\x21\x61\x7f\x82\xff\x03") /* a value of 65537 */};
	for (size_t i = 0; i < COUNT(large); i++) { /* the library decodes neither */
		assert_int_equal(decode(large[i]), 431);
		assert_get();
	}
}

static void what_is_malformed_is_of_its_stream_alone(void **state) {
	(void)state;
	assert_int_equal(decode(SLICE("\0\0\xd1\xd7")), REQUEST_MALFORMED); /* without :path */
	assert_get();
}

/* Returns the lines of a section, decoded by nghttp3. */
static size_t lines_of(struct slice section, char *out) {
	nghttp3_qpack_decoder *d;
	nghttp3_qpack_stream_context *context;
	uint8_t flags = 0;
	char *at = out;
	assert_int_equal(nghttp3_qpack_decoder_new(&d, 0, 0, nghttp3_mem_default()), 0);
	assert_int_equal(nghttp3_qpack_stream_context_new(&context, 0, nghttp3_mem_default()), 0);
	while (!(flags & NGHTTP3_QPACK_DECODE_FLAG_FINAL)) {
		nghttp3_qpack_nv nv;
		const nghttp3_ssize n =
			nghttp3_qpack_decoder_read_request(d, context, &nv, &flags, (const uint8_t *)section.at, section.length, 1);
		assert_true(n >= 0);
		section = slice_rest(section, (size_t)n);
		if (!(flags & NGHTTP3_QPACK_DECODE_FLAG_EMIT)) continue;
		at += sprintf(at, "%s: %s\r\n", nghttp3_rcbuf_get_buf(nv.name).base, nghttp3_rcbuf_get_buf(nv.value).base);
		nghttp3_rcbuf_decref(nv.name);
		nghttp3_rcbuf_decref(nv.value);
	}
	nghttp3_qpack_stream_context_del(context);
	nghttp3_qpack_decoder_del(d);
	return (size_t)(at - out);
}

static void lines_that_are_encoded_are_decoded_as_they_were(void **state) {
	(void)state;
	static const char *const names[] = {"server",
										"date",
										"content-length",
										"content-type",
										"cache-control",
										"etag",
										"last-modified",
										"accept-ranges",
										"vary",
										"content-encoding",
										"strict-transport-security",
										"location",
										"content-range",
										"access-control-allow-origin",
										"age",
										"allow",
										"content-disposition",
										"content-language",
										"content-location",
										"expires",
										"link",
										"proxy-authenticate",
										"refresh",
										"retry-after",
										"set-cookie",
										"via",
										"www-authenticate",
										"x-content-type-options",
										"content-security-policy",
										"x-frame-options",
										"alt-svc",
										"access-control-allow-methods",
										"access-control-allow-headers",
										"access-control-allow-credentials",
										"access-control-expose-headers",
										"timing-allow-origin",
										"x-xss-protection",
										"x-of-nobody",
										"a"};
	char lines[8192], block[8192] = "\0", found[8192], *at = lines;
	for (size_t i = 0; i < COUNT(names); i++) at += sprintf(at, "%s: value %zu of %s\r\n", names[i], i, names[i]);
	at += sprintf(at, "x-long: %0300d\r\n", 7);
	const struct slice text = {.at = lines, .length = (size_t)(at - lines)};
	const size_t length = 2 + qpack_fields(text, block + 2);
	assert_true(length - 2 <= HPACK_BOUND(text.length));
	assert_int_equal(lines_of((struct slice){.at = block, .length = length}, found), text.length);
	assert_memory_equal(found, lines, text.length);
}

static void each_status_is_decoded_as_it_was(void **state) {
	(void)state;
	char block[2 + QPACK_STATUS] = "\0", found[64], expected[64];
	for (int status = 100; status < 600; status++) {
		const size_t length = 2 + qpack_status(status, block + 2);
		assert_true(length - 2 <= QPACK_STATUS);
		found[lines_of((struct slice){.at = block, .length = length}, found)] = '\0';
		snprintf(expected, sizeof expected, ":status: %d\r\n", status);
		assert_string_equal(found, expected);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_section_is_a_request),
		TEST(a_wrong_section_is_of_its_connection_alone),
		TEST(a_section_that_is_too_large_is_of_its_stream_alone),
		TEST(what_is_malformed_is_of_its_stream_alone),
		TEST(lines_that_are_encoded_are_decoded_as_they_were),
		TEST(each_status_is_decoded_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
