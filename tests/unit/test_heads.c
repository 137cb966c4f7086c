/* test_heads.c - heads that occur again are not parsed again. */
#include "gatling/exchange/heads.h"

#include <stdio.h>

#include "tests/unit/check.h"

static struct heads h;
static char buffer[4096];

/* Takes a head as a connection does, from a buffer that is reused. Returns the request, and whether it was known. */
static const struct request *take(const char *text, bool *known) {
	static struct request parsed;
	size_t length;
	const struct slice input = {.at = buffer, .length = strlen(text)};
	memcpy(buffer, text, input.length);
	const struct request *q = heads_find(&h, input, &length);
	*known = q;
	if (!q) {
		q = &parsed;
		length = (size_t)request_parse(&parsed, buffer, input.length);
		heads_keep(&h, &parsed, slice_first(input, length));
	}
	assert_int_equal(length, strlen(text));
	return q;
}

static bool is_known(const char *text) {
	bool known;
	(void)take(text, &known);
	return known;
}

static int reset(void **state) {
	(void)state;
	memset(&h, 0, sizeof h);
	return 0;
}

static void assert_same_slice(struct slice a, struct slice b) {
	assert_int_equal(!a.at, !b.at);
	if (a.at && b.at) assert_true(slice_equal(a, b));
}

static void a_head_that_comes_the_third_time_is_known(void **state) {
	(void)state;
	static const char *const texts[] = {
		"GET /a%20b?c=d HTTP/1.1\r\nHost: example.org:80\r\nRange: bytes=0-1\r\nX: y\r\nRange: bytes=1-\r\n\r\n",
		"GET http://example.org HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n",
		"\r\n\r\nHEAD / HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\nhost: a\r\nAccept-Encoding: \r\n\r\n",
		"GET /? HTTP/1.1\r\nHost: a\r\nReferer: b\r\nUser-Agent: c\r\nContent-Length: 0\r\n\r\n"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct request parsed;
		bool known;
		assert_int_equal(request_parse(&parsed, texts[i], strlen(texts[i])), strlen(texts[i]));
		assert_false(is_known(texts[i]));
		assert_false(is_known(texts[i]));
		const struct request *q = take(texts[i], &known);
		assert_true(known);
		memset(buffer, 'x', sizeof buffer); /* it does not refer to the buffer */
		assert_int_equal(q->method, parsed.method);
		assert_int_equal(q->minor, parsed.minor);
		assert_int_equal(q->keep_alive, parsed.keep_alive);
		assert_int_equal(q->framing, parsed.framing);
		assert_int_equal(q->known, parsed.known);
		assert_int_equal(q->repeated, parsed.repeated);
		assert_int_equal(q->fields, parsed.fields);
		assert_same_slice(q->method_name, parsed.method_name);
		assert_same_slice(q->line, parsed.line);
		assert_same_slice(q->lines, parsed.lines);
		assert_same_slice(q->path, parsed.path);
		assert_same_slice(q->query, parsed.query);
		assert_same_slice(q->host, parsed.host);
		for (unsigned n = 0; n < q->fields; n++) {
			assert_int_equal(q->field[n].name, parsed.field[n].name);
			assert_same_slice(q->field[n].value, parsed.field[n].value);
		}
	}
}

static void another_head_is_not_taken_for_it(void **state) {
	(void)state;
	char text[256], other[256];
	const int length = snprintf(text, sizeof text, "GET /%0100d HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n", 0);
	for (int i = 0; i < 3; i++) assert_int_equal(is_known(text), i == 2);
	for (int i = HEADS_HASHED; i < length - 4; i++) {
		memcpy(other, text, sizeof other);
		other[i] ^= 1;
		size_t n;
		assert_null(heads_find(&h, slice_of(other), &n));
	}
	size_t n;
	assert_null(heads_find(&h, slice_first(slice_of(text), (size_t)length - 1), &n));
	assert_true(is_known(text));
}

static void what_is_asked_for_once_pushes_nothing_out(void **state) {
	(void)state;
	const char *text = "GET /busy HTTP/1.1\r\nHost: a\r\n\r\n";
	char once[256];
	for (int i = 0; i < 3; i++) assert_int_equal(is_known(text), i == 2);
	for (int i = 0; i < 100 * HEADS; i++) {
		(void)snprintf(once, sizeof once, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
		assert_false(is_known(once));
	}
	assert_true(is_known(text));
}

/* They have the same slot. */
static void heads_of_no_use_are_tried_ever_less(void **state) {
	(void)state;
	char text[256];
	unsigned kept = 0;
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof text, "GET /%0100d HTTP/1.1\r\nHost: a\r\nX: %04d\r\n\r\n", 0, i);
		assert_false(is_known(text));
		const struct known_head *k = &h.head[h.hash % HEADS];
		kept += k->length && memcmp(k->octets, text, strlen(text)) == 0;
	}
	assert_in_range(kept, 10, 30);
	for (int i = 0; i <= HEADS_SKIPS; i++) (void)is_known(text);
	assert_true(is_known(text)); /* but they are still tried */
}

/* As if two browsers requested the same path. */
static void heads_of_one_place_leave_each_other_alone(void **state) {
	(void)state;
	char text[2][256];
	unsigned known = 0;
	for (int i = 0; i < 2; i++)
		(void)snprintf(text[i], sizeof text[i], "GET /%0100d HTTP/1.1\r\nHost: a\r\nX: %d\r\n\r\n", 0, i);
	for (int i = 0; i < 1000; i++) known += is_known(text[0]); /* the first one is kept */
	for (int i = 0; i < 1000; i++) known += is_known(text[i % 2]);
	assert_in_range(known, 998 + 490, 998 + 500);
}

static void what_one_client_alone_says_is_not_remembered(void **state) {
	(void)state;
	char longer[HEADS_OCTETS + 256];
	(void)snprintf(longer, sizeof longer, "GET / HTTP/1.1\r\nHost: a\r\nX: %0*d\r\n\r\n", HEADS_OCTETS, 0);
	const char *const texts[] = {"GET / HTTP/1.1\r\nHost: a\r\nCOOKIE: b=c\r\nX: y\r\n\r\n",
								 "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\ncookie:b=c\r\n\r\n",
								 "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YTpi\r\n\r\n",
								 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n",
								 "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
								 longer};
	for (size_t i = 0; i < COUNT(texts); i++)
		for (int n = 0; n < 4; n++) assert_false(is_known(texts[i]));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_head_that_comes_the_third_time_is_known, reset),
		cmocka_unit_test_setup(another_head_is_not_taken_for_it, reset),
		cmocka_unit_test_setup(what_is_asked_for_once_pushes_nothing_out, reset),
		cmocka_unit_test_setup(heads_of_no_use_are_tried_ever_less, reset),
		cmocka_unit_test_setup(heads_of_one_place_leave_each_other_alone, reset),
		cmocka_unit_test_setup(what_one_client_alone_says_is_not_remembered, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
