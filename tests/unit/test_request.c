/* test_request.c - heads of requests: which are accepted, and which are refused with which status. */
#include "tests/unit/check.h"

#include "gatling/http/chars.h"
#include "gatling/http/request.h"

static struct request q;

static int parse(const char *text) { return request_parse(&q, text, strlen(text)); }

static void a_plain_request_is_taken_apart(void **state) {
	(void)state;
	const char *text = "GET /a/b?c=d HTTP/1.1\r\nHost: example.org:80\r\nRange: bytes=0-1 \r\nX: y\r\n\r\nrest";
	assert_int_equal(parse(text), strlen(text) - 4);
	assert_int_equal(q.method, METHOD_GET);
	check_slice(q.path, "/a/b");
	check_slice(q.query, "?c=d");
	check_slice(q.host, "example.org:80");
	check_slice(q.line, "GET /a/b?c=d HTTP/1.1");
	check_slice(request_field(&q, FIELD_RANGE), "bytes=0-1");
	assert_null(request_field(&q, FIELD_IF_RANGE).at);
	assert_int_equal(q.minor, 1);
	assert_true(q.keep_alive);
	assert_int_equal(q.framing, BODY_NONE);
}

static void every_start_of_a_request_is_incomplete(void **state) {
	(void)state;
	const char *text = "\r\nHEAD /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
	for (size_t n = 0; n < strlen(text); n++) assert_int_equal(request_parse(&q, text, n), 0);
	assert_int_equal(request_parse(&q, text, strlen(text)), strlen(text));
}

static void refused_requests_have_their_status(void **state) {
	(void)state;
	static const struct {
		int status;
		const char *text;
	} cases[] = {
		{-400, "GET / HTTP/1.1\r\n\r\n"},                       /* no Host */
		{-400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"}, /* two Hosts */
		{-400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost: .a\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n"},
		{-400, "GET / HTTP/1.1\nHost: a\r\n\r\n"}, /* bare LF */
		{-400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost: a\r\n\n"},
		{-400, "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n"}, /* bare CR */
		{-400, "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},           /* space before the colon */
		{-400, "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"}, /* obs-fold */
		{-400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"}, /* no name */
		{-400, "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"},   /* no colon */
		{-400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n"},
		{-400, "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nHost: a\r\nX(: y\r\n\r\n"},
		{-400, "GET / HTTP/1.1\r\nX: a\rb"}, /* incomplete, but already wrong */
		{-400, "CONNECT a/b HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
		{-400, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET /\r\n\r\n"}, /* HTTP/0.9 */
		{-400, "GET / http/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET / HTTP/11\r\nHost: a\r\n\r\n"},
		{-505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
		{-505, "GET / HTTP/0.9\r\nHost: a\r\n\r\n"},
		{-400, "GET /#f HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET x HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{-400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"},
		{-501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
		{-501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"},
		{-413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 35184372088832\r\n\r\n"},
		{-413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999999999999\r\n\r\n"},
		{-411, "POST / HTTP/1.0\r\n\r\n"},
		{-411, "PUT / HTTP/1.0\r\n\r\n"},
		{-417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n"},
		{-400, "\x16\x03\x01\x02"}, /* a TLS hello, incomplete */
		{-400, "\xe9"},             /* not the start of a method */
		{-400, " GET"},
		{-501, "THISMETHODISNEVERGOINGTOENDANDNOSPACEWILLCOME"},
		{-501, "THISMETHODHASTHIRTYTHREELETTERS.. / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "THISMETHODHASTHIRTYTHREELETTERS..\x80/ HTTP/1.1\r\nHost: a\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked ,\r\n\r\n"},
		{-400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"},
		{-417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, more\r\n\r\n"},
		{-400, "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"}, /* too many empty lines */
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (parse(cases[i].text) != cases[i].status) fail_msg("%s", cases[i].text);
	}
}

static void a_nul_is_refused_anywhere(void **state) {
	(void)state;
	const char text[] = "GET /x HTTP/1.1\r\nHost: a\r\nX: yz\r\n\r\n";
	char broken[sizeof text];
	for (size_t i = 0; i + 1 < sizeof text; i++) {
		memcpy(broken, text, sizeof text);
		broken[i] = '\0';
		if (request_parse(&q, broken, sizeof text - 1) != -400) fail_msg("NUL at %zu", i);
	}
}

static void the_known_fields_are_known_in_any_case_and_no_others(void **state) {
	(void)state;
	static const struct {
		const char *name;
		enum field_name known;
	} cases[] = {
		{"Accept-Encoding", FIELD_ACCEPT_ENCODING},
		{"authorization", FIELD_AUTHORIZATION},
		{"CONNECTION", FIELD_CONNECTION},
		{"Content-Length", FIELD_CONTENT_LENGTH},
		{"Available-Dictionary", FIELD_AVAILABLE_DICTIONARY},
		{"Want-Repr-Digest", FIELD_WANT_REPR_DIGEST},
		{"X-Forwarded-Proto", FIELD_X_FORWARDED_PROTO},
		{"eXpect", FIELD_EXPECT},
		{"If-Match", FIELD_IF_MATCH},
		{"If-Modified-Since", FIELD_IF_MODIFIED_SINCE},
		{"If-None-Match", FIELD_IF_NONE_MATCH},
		{"If-Range", FIELD_IF_RANGE},
		{"If-Unmodified-Since", FIELD_IF_UNMODIFIED_SINCE},
		{"Range", FIELD_RANGE},
		{"Referer", FIELD_REFERER},
		{"Transfer-Encoding", FIELD_TRANSFER_ENCODING},
		{"USER-AGENT", FIELD_USER_AGENT},
		{"Accept", FIELD_OTHER},
		{"Accept-Language", FIELD_OTHER},
		{"Cookie", FIELD_OTHER},
		{"Referen", FIELD_OTHER},
		{"User_Agent", FIELD_OTHER},
		{"Usex-Agent", FIELD_OTHER},
		{"If-Unmodified-Sinc", FIELD_OTHER},
		{"If-Unmodified+Since", FIELD_OTHER},
		{"X", FIELD_OTHER},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(request_begin(&q, SLICE("GET"), SLICE("/")), 0);
		assert_int_equal(request_add(&q, request_field_name(slice_of(cases[i].name)), SLICE(" v ")), 0);
		bool known = cases[i].known != FIELD_OTHER;
		if (q.known != (known ? 1U << cases[i].known : 0)) fail_msg("%s", cases[i].name);
		if (known) check_slice(request_field(&q, cases[i].known), "v");
	}
}

static void unusual_but_legal_requests_are_accepted(void **state) {
	(void)state;
	static const char *const cases[] = {
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"GET / HTTP/1.1\r\nHOST:\ta\t\r\n\r\n",
		"GET / HTTP/1.9\r\nHost: a\r\n\r\n",
		"GET /a|b{c} HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n",
		"GET /caf\xc3\xa9 HTTP/1.1\r\nHost: a_b.c-d\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
		"BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
		"THISMETHODHASEXACTLY32LETTERS... / HTTP/1.1\r\nHost: a\r\n\r\n",
		"!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\n!#$%&'*+-.^_`|~09azAZ: x\r\nHost: a\r\n\r\n",
		"\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked \r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nExpect: , 100-continue,100-Continue ,\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 000000000000000000000000001\r\n\r\n",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (parse(cases[i]) != (int)strlen(cases[i])) fail_msg("%s", cases[i]);
	}
}

static void the_authority_of_an_absolute_target_wins_over_host(void **state) {
	(void)state;
	assert_true(parse("GET HTTP://b:81/p?q HTTP/1.1\r\nHost: a\r\n\r\n") > 0);
	check_slice(q.host, "b:81");
	check_slice(q.path, "/p");
	check_slice(q.query, "?q");
	assert_true(parse("GET http://b?q HTTP/1.1\r\nHost: a\r\n\r\n") > 0);
	check_slice(q.path, "/");
	check_slice(q.query, "?q");
}

static void persistence_follows_version_and_connection(void **state) {
	(void)state;
	assert_true(parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo , Close\r\n\r\n") > 0);
	assert_false(q.keep_alive);
	assert_true(parse("GET / HTTP/1.0\r\n\r\n") > 0);
	assert_false(q.keep_alive);
	assert_true(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n") > 0);
	assert_true(q.keep_alive);
	assert_true(parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n") > 0);
	assert_false(q.keep_alive);
}

static void a_continue_is_expected_only_before_a_body(void **state) {
	(void)state;
	assert_true(parse("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n") > 0);
	assert_true(q.expect_continue);
	assert_int_equal(q.content_length, 1);
	assert_true(parse("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n") > 0);
	assert_false(q.expect_continue);
	assert_true(parse("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n") > 0);
	assert_false(q.expect_continue);
}

static char big[64 * 1024];

/* Writes text at that place. Returns where it ends. */
static size_t put(size_t at, const char *text) {
	memcpy(big + at, text, strlen(text) + 1);
	return at + strlen(text);
}

static void the_limits_are_where_they_are_said_to_be(void **state) {
	(void)state;
	size_t n = put(0, "GET /");
	memset(big + n, 'a', TARGET_MAX);
	put(n + TARGET_MAX - 1, " HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_true(parse(big) > 0);
	memset(big + n, 'a', TARGET_MAX);
	put(n + TARGET_MAX, " HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(parse(big), -414);

	n = put(0, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 1; i < FIELDS_MAX; i++) n = put(n, "X: y\r\n");
	put(n, "\r\n");
	assert_true(parse(big) > 0);
	put(n, "X: y\r\n\r\n");
	assert_int_equal(parse(big), -431);

	n = put(0, "GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: ");
	for (int i = 1; i < FIELDS_MAX; i++) n = put(n, "x,,");
	put(n, "\r\n\r\n");
	assert_true(parse(big) > 0);
	put(n, "x\r\n\r\n");
	assert_int_equal(parse(big), -431);

	n = put(0, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
	memset(big + n, 'y', HEAD_MAX);
	put(HEAD_MAX - 4, "\r\n\r\n");
	assert_int_equal(parse(big), HEAD_MAX);
	memset(big + n, 'y', HEAD_MAX);
	put(HEAD_MAX - 3, "\r\n\r\n");
	assert_int_equal(parse(big), -431);
	memset(big + n, 'y', HEAD_MAX);
	assert_int_equal(request_parse(&q, big, HEAD_MAX - 1), 0);
	assert_int_equal(request_parse(&q, big, HEAD_MAX), -431);
}

static void as_many_fields_as_allowed_may_come_in_parts(void **state) {
	size_t n = put(0, "GET / HTTP/1.1\r\nHost: a\r\n");
	(void)state;
	for (int i = 1; i < FIELDS_MAX; i++) n = put(n, "X: y\r\n");
	size_t more = put(n, "X: y\r\n\r\n");
	assert_int_equal(request_parse(&q, big, more), -431);
	more = put(n, "\r\n");
	for (size_t length = 0; length < more; length++) assert_int_equal(request_parse(&q, big, length), 0);
	assert_int_equal(request_parse(&q, big, more), more);
}

static void an_endless_target_is_refused_before_its_line_ends(void **state) {
	(void)state;
	size_t n = put(0, "GET /");
	memset(big + n, 'a', sizeof big - n);
	assert_int_equal(request_parse(&q, big, TARGET_MAX), 0);
	assert_int_equal(request_parse(&q, big, TARGET_MAX + 100), -414);
}

/* However many octets are tested together, and whatever follows. */
static void a_span_ends_at_the_first_octet_of_another_class(void **state) {
	static const enum char_class classes[] = {CHAR_TEXT, CHAR_TOKEN,    CHAR_TARGET,
											  CHAR_HOST, CHAR_QUOTABLE, CHAR_UNRESERVED};
	enum { LENGTH_MAX = 40 };
	char text[LENGTH_MAX];
	(void)state;
	for (size_t i = 0; i < COUNT(classes); i++) {
		for (int c = 0; c < 256; c++) {
			for (size_t length = 1; length <= LENGTH_MAX; length++) {
				for (size_t at = 0; at < length; at++) {
					memset(text, 'x', at);
					memset(text + at, c, sizeof text - at);
					size_t expected = char_is((char)c, classes[i]) ? length : at;
					const struct slice all = {.at = text, .length = length};
					assert_int_equal(chars_span(all, classes[i]), expected);
				}
			}
		}
	}
}

/* See RFC 9110, sections 5.5 and 5.6.2, RFC 9112, section 3.2, and RFC 3986, section 2.3. */
static void octets_are_of_the_classes_of_http(void **state) {
	(void)state;
	for (int c = 0; c < 256; c++) {
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		assert_int_equal(char_is((char)c, CHAR_TEXT), c == '\t' || (c >= ' ' && c != 127));
		assert_int_equal(char_is((char)c, CHAR_TOKEN), letter || (c && strchr("!#$%&'*+-.^_`|~", c)));
		assert_int_equal(char_is((char)c, CHAR_TARGET), c > ' ' && c != 127 && c != '#');
		assert_int_equal(char_is((char)c, CHAR_HOST), letter || (c && strchr("-_.", c)));
		assert_int_equal(char_is((char)c, CHAR_UNRESERVED), letter || (c && strchr("-._~", c)));
		assert_int_equal(char_is((char)c, CHAR_QUOTABLE), c >= ' ' && c < 127 && c != '"' && c != '\\');
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_request_is_taken_apart),
		cmocka_unit_test(every_start_of_a_request_is_incomplete),
		cmocka_unit_test(refused_requests_have_their_status),
		cmocka_unit_test(a_nul_is_refused_anywhere),
		cmocka_unit_test(as_many_fields_as_allowed_may_come_in_parts),
		cmocka_unit_test(the_known_fields_are_known_in_any_case_and_no_others),
		cmocka_unit_test(unusual_but_legal_requests_are_accepted),
		cmocka_unit_test(the_authority_of_an_absolute_target_wins_over_host),
		cmocka_unit_test(persistence_follows_version_and_connection),
		cmocka_unit_test(a_continue_is_expected_only_before_a_body),
		cmocka_unit_test(the_limits_are_where_they_are_said_to_be),
		cmocka_unit_test(an_endless_target_is_refused_before_its_line_ends),
		cmocka_unit_test(a_span_ends_at_the_first_octet_of_another_class),
		cmocka_unit_test(octets_are_of_the_classes_of_http),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
