/* test_access.c - lines of the log in each format, for any input. */
#include "tests/unit/check.h"

#include <arpa/inet.h>

#include "gatling/log/access.h"

static char line[ACCESS_LINE_MAX];
static struct request q;

static struct peer peer(const char *text) {
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) return peer_of((struct sockaddr *)&v4);
	assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
	return peer_of((struct sockaddr *)&v6);
}

static struct slice format(enum log_format format, const struct access *access) {
	struct access_style style = {.format = format, .date = SLICE("D")};
	size_t n = access_format(line, &style, access);
	n += access_end(line + n, format, 1234567890);
	assert_true(n < sizeof line && !memchr(line, '\n', n));
	return (struct slice){.at = line, .length = n};
}

/* Returns the log entry for the current request. */
static struct access answered(const struct peer *p, int status, uint64_t bytes) {
	struct access a = access_of(p, &q);
	a.status = status;
	a.bytes = bytes;
	return a;
}

static void lines_are_in_the_common_log_format(void **state) {
	(void)state;
	static const struct {
		const char *peer, *request, *line;
	} cases[] = {
		{"192.0.2.1", "GET / HTTP/1.1", "192.0.2.1 - - [D] \"GET / HTTP/1.1\" 200 12 1.234567"},
		{"::ffff:192.0.2.1", "GET / HTTP/1.1", "192.0.2.1 - - [D] \"GET / HTTP/1.1\" 200 12 1.234567"},
		{"2001:db8::1", "x", "2001:db8::1 - - [D] \"x\" 200 12 1.234567"},
		{"192.0.2.1", "a\"b\\c\n\x7f\xe9", "192.0.2.1 - - [D] \"a\\x22b\\x5cc\\x0a\\x7f\\xe9\" 200 12 1.234567"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct peer p = peer(cases[i].peer);
		q = (struct request){.line = slice_of(cases[i].request)};
		struct access a = answered(&p, 200, 12);
		check_slice(format(LOG_COMMON, &a), cases[i].line);
	}
}

static void the_host_comes_first_in_the_format_with_it(void **state) {
	(void)state;
	static const struct {
		const char *host, *start;
	} cases[] = {
		{"example.org", "example.org:81 "},
		{"WWW.Example.org:8080", "www.example.org:81 "},
		{"[2001:DB8::1]:8080", "[2001:db8::1]:81 "},
		{"", "-:81 "},
		{"a b\"", "a\\x20b\\x22:81 "},
		{"[", "[:81 "},
	};
	struct peer p = peer("192.0.2.1");
	for (size_t i = 0; i < COUNT(cases); i++) {
		char expected[128];
		const struct access a = {
			.peer = &p, .line = SLICE("GET / HTTP/1.1"), .host = slice_of(cases[i].host), .port = 81, .status = 200};
		snprintf(expected, sizeof expected, "%s192.0.2.1 - - [D] \"GET / HTTP/1.1\" 200 - \"-\" \"-\"", cases[i].start);
		check_slice(format(LOG_VCOMBINED, &a), expected);
	}
	const struct access unknown = {.peer = &p, .status = 400};
	check_slice(format(LOG_VCOMBINED, &unknown), "-:0 192.0.2.1 - - [D] \"-\" 400 - \"-\" \"-\"");
}

static void what_is_not_known_is_a_hyphen_or_left_out(void **state) {
	(void)state;
	struct peer none = {0};
	struct access a = {.peer = &none, .status = 408};
	check_slice(format(LOG_COMMON, &a), "unix: - - [D] \"-\" 408 - 1.234567");
	check_slice(format(LOG_COMBINED, &a), "unix: - - [D] \"-\" 408 - \"-\" \"-\"");
	check_slice(format(LOG_JSON, &a),
				"{\"time\":\"D\",\"address\":\"unix:\",\"status\":408,\"bytes\":0,\"seconds\":1.234567}");
}

static void parse(const char *text, int expected) {
	static char kept[4096];
	size_t n = strlen(text);
	memcpy(kept, text, n);
	int got = request_parse(&q, kept, n);
	assert_int_equal(got < 0 ? got : 0, expected);
}

static void all_that_a_request_says_is_logged(void **state) {
	(void)state;
	struct peer p = peer("192.0.2.1");
	parse("GET /a?b HTTP/1.1\r\nHost: x:80\r\nReferer: http://y/\r\nUser-Agent: me \"1\"\r\nReferer: 2\r\n\r\n", 0);
	struct access a = answered(&p, 200, 12);
	a.user = SLICE("jo e");
	check_slice(format(LOG_COMMON, &a), "192.0.2.1 - jo\\x20e [D] \"GET /a?b HTTP/1.1\" 200 12 1.234567");
	check_slice(format(LOG_COMBINED, &a), "192.0.2.1 - jo\\x20e [D] \"GET /a?b HTTP/1.1\" 200 12 \"http://y/\" "
										  "\"me \\x221\\x22\"");
	check_slice(format(LOG_JSON, &a),
				"{\"time\":\"D\",\"address\":\"192.0.2.1\",\"user\":\"jo e\",\"method\":\"GET\",\"target\":\"/a?b\","
				"\"protocol\":\"HTTP/1.1\",\"host\":\"x:80\",\"status\":200,\"bytes\":12,\"referer\":\"http://y/\","
				"\"user_agent\":\"me \\\"1\\\"\",\"seconds\":1.234567}");
}

static void of_an_upstream_is_logged_what_is_known(void **state) {
	(void)state;
	struct peer p = peer("192.0.2.1");
	struct access_upstream u = {.address = SLICE("10.0.0.1:80"), .status = 200, .ns = 1500000};
	parse("GET / HTTP/1.0\r\n\r\n", 0);
	struct access a = answered(&p, 200, 1);
	a.upstream = &u;
#define START "{\"time\":\"D\",\"address\":\"192.0.2.1\",\"method\":\"GET\",\"target\":\"/\",\"protocol\":\"HTTP/1.0\","
	check_slice(format(LOG_JSON, &a),
				START "\"status\":200,\"bytes\":1,\"upstream\":\"10.0.0.1:80\","
					  "\"upstream_status\":200,\"upstream_seconds\":0.001500,\"seconds\":1.234567}");
	u.status = 0; /* the upstream has not answered */
	a.status = 502;
	check_slice(format(LOG_JSON, &a),
				START "\"status\":502,\"bytes\":1,\"upstream\":\"10.0.0.1:80\",\"seconds\":1.234567}");
	check_slice(format(LOG_COMBINED, &a), "192.0.2.1 - - [D] \"GET / HTTP/1.0\" 502 1 \"-\" \"-\"");
#undef START
}

static void of_a_request_that_is_wrong_what_is_known_is_logged(void **state) {
	(void)state;
	struct peer p = peer("192.0.2.1");
	parse("GET  / HTTP/1.1\r\n\r\n", -400);
	struct access a = answered(&p, 400, 0);
	check_slice(format(LOG_JSON, &a), "{\"time\":\"D\",\"address\":\"192.0.2.1\",\"request\":\"GET  / HTTP/1.1\","
									  "\"status\":400,\"bytes\":0,\"seconds\":1.234567}");
	parse("GET / HTTP/1.1\r\nUser-Agent: me\r\nHost: a b\r\n\r\n", -400);
	a = answered(&p, 400, 0);
	check_slice(format(LOG_JSON, &a), "{\"time\":\"D\",\"address\":\"192.0.2.1\",\"method\":\"GET\",\"target\":\"/\","
									  "\"protocol\":\"HTTP/1.1\",\"host\":\"a b\",\"status\":400,\"bytes\":0,"
									  "\"user_agent\":\"me\",\"seconds\":1.234567}");
}

static void strings_are_utf_8(void **state) {
	(void)state;
	static const struct {
		const char *line, *string;
	} cases[] = {
		{"\"\\/", "\\\"\\\\/"},
		{"\x01\x1f\x7f\t\r\n", "\\u0001\\u001f\\u007f\\u0009\\u000d\\u000a"},
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"caf\xe9", "caf\\u00e9"},                                       /* Latin-1 */
		{"\xc2\x9b\xc2\xa0", "\\u009b\xc2\xa0"},                         /* CSI; a space */
		{"\xc0\xaf\xc1\xbf", "\\u00c0\\u00af\\u00c1\\u00bf"},            /* overlong */
		{"\xe0\x9f\xbf", "\\u00e0\\u009f\\u00bf"},                       /* overlong */
		{"\xe0\xa0\x80", "\xe0\xa0\x80"},                                /* the first valid one of three octets */
		{"\xf0\x8f\xbf\xbf", "\\u00f0\\u008f\\u00bf\\u00bf"},            /* overlong */
		{"\xed\xa0\x80", "\\u00ed\\u00a0\\u0080"},                       /* a surrogate */
		{"\xed\x9f\xbf", "\xed\x9f\xbf"},                                /* the last one before the surrogates */
		{"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},                        /* 10FFFF */
		{"\xf4\x90\x80\x80", "\\u00f4\\u0090\\u0080\\u0080"},            /* beyond it */
		{"\xf5\x80\x80\x80\xff", "\\u00f5\\u0080\\u0080\\u0080\\u00ff"}, /* not valid as first octets */
		{"\xe2\x82x\xe2\x82", "\\u00e2\\u0082x\\u00e2\\u0082"},          /* truncated */
		{"\x80", "\\u0080"},
	};
	struct peer none = {0};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char expected[512];
		q = (struct request){.line = slice_of(cases[i].line)};
		struct access a = answered(&none, 400, 0);
		snprintf(
			expected, sizeof expected,
			"{\"time\":\"D\",\"address\":\"unix:\",\"request\":\"%s\",\"status\":400,\"bytes\":0,\"seconds\":1.234567}",
			cases[i].string);
		check_slice(format(LOG_JSON, &a), expected);
	}
}

/* Every field is as long as possible: only its start fits in a line. */
static void of_endless_fields_the_start_is_logged(void **state) {
	(void)state;
	static char endless[10 * ACCESS_REQUEST_MAX];
	struct peer p = peer("2001:db8:1111:2222:3333:4444:5555:6666");
	struct slice all = {.at = endless, .length = sizeof endless};
	static const char octets[] = {'\xe9', '"', '\x01'};
	for (size_t i = 0; i < COUNT(octets); i++) {
		memset(endless, octets[i], sizeof endless);
		q = (struct request){.line = all, .host = all};
		q.known = 1U << FIELD_REFERER | 1U << FIELD_USER_AGENT;
		q.field[q.fields++] = (struct field){.name = FIELD_REFERER, .value = all};
		q.field[q.fields++] = (struct field){.name = FIELD_USER_AGENT, .value = all};
		struct access a = answered(&p, 414, UINT64_MAX);
		a.user = all;
		for (enum log_format f = LOG_COMMON; f < LOG_OFF; f++) {
			size_t least = ACCESS_REQUEST_MAX + (f == LOG_COMMON ? 0 : 2 * ACCESS_FIELD_MAX);
			assert_true(format(f, &a).length > 2 * least);
		}
	}
	struct access last = answered(&p, 414, UINT64_MAX);
	struct slice text = format(LOG_COMMON, &last);
	assert_memory_equal(text.at + text.length - 35, "\" 414 18446744073709551615 1.234567", 35);
}

static void a_character_at_the_end_of_what_is_logged_stays_whole(void **state) {
	(void)state;
	static char agent[ACCESS_FIELD_MAX + 2];
	struct peer none = {0};
	memset(agent, 'x', sizeof agent);
	memcpy(agent + ACCESS_FIELD_MAX - 1, "\xe2\x82\xac", 3);
	q = (struct request){.line = SLICE("x"), .known = 1U << FIELD_USER_AGENT, .fields = 1};
	q.field[0] = (struct field){.name = FIELD_USER_AGENT, .value = {.at = agent, .length = sizeof agent}};
	struct access a = answered(&none, 400, 0);
	struct slice text = format(LOG_JSON, &a);
	const char end[] = "xx\xe2\x82\xac\",\"seconds\":1.234567}";
	assert_memory_equal(text.at + text.length - (sizeof end - 1), end, sizeof end - 1);
}

/* The start of a line is kept for the next one. */
static void each_line_begins_with_its_own_address_and_time(void **state) {
	(void)state;
	struct access_style style = {.format = LOG_COMMON};
	struct peer one = peer("192.0.2.1"), other = peer("192.0.2.2");
	const struct {
		const struct peer *peer;
		const char *user;
		time_t time;
		const char *line;
	} cases[] = {{&one, "", 784111777, "192.0.2.1 - - [06/Nov/1994:10:49:37 +0200] \"-\" 200 -"},
				 {&other, "", 784111777, "192.0.2.2 - - [06/Nov/1994:10:49:37 +0200] \"-\" 200 -"},
				 {&other, "ann", 784111777, "192.0.2.2 - ann [06/Nov/1994:10:49:37 +0200] \"-\" 200 -"},
				 {&other, "", 784111777, "192.0.2.2 - - [06/Nov/1994:10:49:37 +0200] \"-\" 200 -"},
				 {&other, "", 784111778, "192.0.2.2 - - [06/Nov/1994:10:49:38 +0200] \"-\" 200 -"},
				 {&one, "", 784111778, "192.0.2.1 - - [06/Nov/1994:10:49:38 +0200] \"-\" 200 -"}};
	time_t now = 0;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (cases[i].time != now) access_set_time(&style, now = cases[i].time);
		struct access a = {.peer = cases[i].peer, .user = slice_of(cases[i].user), .status = 200};
		check_slice((struct slice){.at = line, .length = access_format(line, &style, &a)}, cases[i].line);
	}
}

static void dates_are_those_of_the_format(void **state) {
	(void)state;
	char date[ACCESS_DATE_MAX];
	access_date(date, LOG_COMMON, 784111777);
	assert_string_equal(date, "06/Nov/1994:10:49:37 +0200");
	access_date(date, LOG_JSON, 784111777);
	assert_string_equal(date, "1994-11-06T08:49:37Z");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_in_the_common_log_format),
		cmocka_unit_test(the_host_comes_first_in_the_format_with_it),
		cmocka_unit_test(what_is_not_known_is_a_hyphen_or_left_out),
		cmocka_unit_test(all_that_a_request_says_is_logged),
		cmocka_unit_test(of_an_upstream_is_logged_what_is_known),
		cmocka_unit_test(of_a_request_that_is_wrong_what_is_known_is_logged),
		cmocka_unit_test(strings_are_utf_8),
		cmocka_unit_test(of_endless_fields_the_start_is_logged),
		cmocka_unit_test(a_character_at_the_end_of_what_is_logged_stays_whole),
		cmocka_unit_test(each_line_begins_with_its_own_address_and_time),
		cmocka_unit_test(dates_are_those_of_the_format),
	};
	setenv("TZ", "XXX-2", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
