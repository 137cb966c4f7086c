/* test_targets.c - what a request fills into the target of a rule of _redirects stays in its place. */
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/site/rules/redirect_rules.h"
#include "gatling/upstream/upstream_address.h"
#include "tests/unit/check.h"
#include "tests/unit/told.h"

/* Returns the rules of a text, which may be wrong. */
static struct redirect_rules *parse(const char *text, struct told *told) {
	static struct upstreams_allowed allowed;
	*told = nothing_told;
	if (!allowed.count) assert_true(upstreams_allow(&allowed, "127.0.0.1"));
	told->report.upstreams = &allowed;
	struct redirect_rules *rules = redirect_rules_parse(slice_of(text), &told->report);
	assert_non_null(rules);
	redirect_rules_permit(rules, true);
	return rules;
}

static struct redirect_rules *rules_of(const char *text) {
	struct told told;
	struct redirect_rules *rules = parse(text, &told);
	if (told.count) fail_msg("'%s': line %u: %s", text, told.first.line, told.first.text);
	return rules;
}

/* Returns whether a rule applies to a decoded path with its query. */
static bool ask(const struct redirect_rules *rules, const char *url, char *buffer, struct redirect *result) {
	const char *question = strchr(url, '?');
	struct redirect_request request = {.path = slice_of(url)};
	if (question) {
		request.query = slice_of(question);
		request.path.length -= request.query.length;
	}
	*result = (struct redirect){0};
	return redirect_rules_match(rules, &request, false, buffer, result);
}

/* Returns "status target", "refused", or "". */
static const char *target(const char *text, const char *url) {
	static char out[REDIRECT_TARGET_MAX + 16];
	char buffer[REDIRECT_TARGET_MAX];
	struct redirect result;
	struct redirect_rules *rules = rules_of(text);
	out[0] = '\0';
	if (ask(rules, url, buffer, &result)) {
		if (result.refused) return redirect_rules_free(rules), "refused";
		snprintf(out, sizeof out, "%d %.*s", result.status, (int)result.target.length, result.target.at);
	}
	redirect_rules_free(rules);
	return out;
}

struct target_case {
	const char *rules, *url, *wanted;
};

static void check_targets(const struct target_case *cases, size_t count) {
	for (size_t i = 0; i < count; i++) {
		const char *got = target(cases[i].rules, cases[i].url);
		if (strcmp(got, cases[i].wanted) != 0)
			fail_msg("'%s' on '%s': '%s', not '%s'", cases[i].rules, cases[i].url, got, cases[i].wanted);
	}
}

#define GOODS "/shop id=:id http://127.0.0.1:3000/goods/:id 200"

static void a_parameter_stays_in_its_segment(void **state) {
	(void)state;
	static const struct target_case cases[] = {
		{GOODS, "/shop?id=7", "200 /goods/7"},
		{GOODS, "/shop?id=a/b/", "200 /goods/a%2Fb%2F"},
		{GOODS, "/shop?id=a%2fb", "200 /goods/a%2fb"},
		{GOODS, "/shop?id=a\\b", "200 /goods/a%5Cb"},
		{GOODS, "/shop?id=a+b", "200 /goods/a%20b"},
		{GOODS, "/shop?id=a%2Bb", "200 /goods/a%2Bb"},
		{GOODS, "/shop?id=a;b", "200 /goods/a%3Bb"},
		{GOODS, "/shop?id=a?b", "200 /goods/a%3Fb"},
		{GOODS, "/shop?id=a%23b", "200 /goods/a%23b"},
		{GOODS, "/shop?id=.a", "200 /goods/.a"},
		{GOODS, "/shop?id=...", "200 /goods/..."},
		{"/shop id=:id /goods/:id 200", "/shop?id=secret/x", "200 /goods/secret%2Fx"},
		{"/shop id=:id /goods/:id", "/shop?id=a/b", "301 /goods/a%2Fb"},
		{"/shop id=:id https://e.com/goods/:id", "/shop?id=a/b", "301 https://e.com/goods/a%2Fb"},
		{"/shop id=:id http://127.0.0.1:3000/?x=:id 200", "/shop?id=../a/b", "200 /?x=../a/b"},
	};
	check_targets(cases, COUNT(cases));
}

static void a_parameter_of_dots_counts_as_missing(void **state) {
	(void)state;
	static const char *const dots[] = {
		".",      "..",           "%2e",        "%2E",         "%2e%2e",    "%2E%2E",    ".%2e",
		"%2E.",   "%252e",        "%252e%252e", ".%252E",      "%2%65",     "a%00",      "..%00",
		"%C0%AE", "%c0%ae%c0%ae", "%E0%80%AF",  "%c0%afadmin", "%25%32%65", "../admin",  "..%2fadmin",
		"a/../b", "a\\..\\b",     "a/.",        "..;x/a",      "..%5Ca",    "%2e.%252Fa"};
	for (size_t i = 0; i < COUNT(dots); i++) {
		char url[64];
		snprintf(url, sizeof url, "/shop?id=%s", dots[i]);
		if (strcmp(target(GOODS, url), "") != 0) fail_msg("'%s': '%s'", url, target(GOODS, url));
		assert_string_equal(target("/shop id=:id /goods/:id 200!\n/shop /none 404", url), "404 /none");
		snprintf(url, sizeof url, "/shop?id=%s&id=7", dots[i]);
		assert_string_equal(target(GOODS, url), "200 /goods/7");
	}
	/* in a query, or where it is not filled in, it says nothing about a path */
	assert_string_equal(target("/a x=:x http://127.0.0.1/?x=:x 200", "/a?x=.."), "200 /?x=..");
	assert_string_equal(target("/a x=:x /no 404!", "/a?x=.."), "404 /no");
}

static void names_do_not_join_to_a_segment_of_dots(void **state) {
	(void)state;
	static const struct target_case cases[] = {
		{"/a a=:a b=:b http://127.0.0.1/up/:a:b 200", "/a?a=x&b=y", "200 /up/xy"},
		{"/a a=:a b=:b http://127.0.0.1/up/:a:b 200", "/a?a=&b=", "200 /up/"},
		{"/a a=:a b=:b http://127.0.0.1/up/:a:b/admin 200", "/a?a=.&b=.", ""},
		{"/a id=:id http://127.0.0.1/up/.:id/admin 200", "/a?id=.", ""},
		{"/a id=:id http://127.0.0.1/up/.:id 200", "/a?id=", ""},
		{"/a id=:id http://127.0.0.1/up/.:id 200", "/a?id=a", "200 /up/.a"},
		{"/a id=:id http://127.0.0.1/up/%2e:id 200", "/a?id=", ""},
		{"/a id=:id http://127.0.0.1/up/.%2e:id/b 200", "/a?id=", ""},
		{"/a id=:id http://127.0.0.1/up/.%2e:id/b 200", "/a?id=;b", "200 /up/.%2e%3Bb/b"},
		{"/x/:a/:b http://127.0.0.1/up/:a:b 200", "/x/./.", ""},
		{"/x/:a/:b http://127.0.0.1/up/:a:b 200!\n/* /none 404", "/x/./.", "refused"},
		{"/x/:a/:b http://127.0.0.1/up/:a:b 200\n/* /none 404", "/x/./.", "404 /none"},
		{"/x/:a/:b /up/:a:b 200!", "/x/./.", "refused"},
		{"/x/:a/:b /up/:a:b 410", "/x/./.", ""},
		{"/x/:a/:b http://127.0.0.1/up/:a:b/c 200", "/x/./.;d", ""}, /* Java's servers take ";d" for a parameter */
		{"/x/:a/:b http://127.0.0.1/up/?:a:b 200", "/x/./.", "200 /up/?.."},
	};
	check_targets(cases, COUNT(cases));
}

static void a_segment_of_dots_in_a_rule_is_told(void **state) {
	(void)state;
	static const char *const lines[] = {"/a /b/../c 200!", "/a /./c 404!", "/a /b/%2e%2E/c 410!"};
	struct told told;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct redirect result;
		char buffer[REDIRECT_TARGET_MAX];
		struct redirect_rules *rules = parse(lines[i], &told);
		assert_int_equal(told.count, 1);
		assert_non_null(strstr(told.first.text, "segment"));
		assert_true(ask(rules, "/a", buffer, &result)); /* it may protect something */
		assert_true(result.refused && result.forced);
		redirect_rules_free(rules);
	}
	redirect_rules_free(parse("/a /b/../c 200\n/b /x/../y 302", &told));
	assert_int_equal(told.count, 1);
}

/* --- any rule, any request --- */

enum { ROUNDS = 200 * 1000, TEXT = 512 };

static uint64_t state_of_random = 1;

static unsigned random_below(unsigned n) {
	state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state_of_random >> 33) % n;
}

/* Appends up to `most` pieces, chosen at random. */
static void add_pieces(struct text *to, const char *const *piece, unsigned count, unsigned most) {
	for (unsigned n = random_below(most + 1); n--;) text_add(to, slice_of(piece[random_below(count)]));
}

/* Returns whether a URL parser would take the segment for "." or ".."
 * (https://url.spec.whatwg.org/#single-dot-path-segment). */
static bool is_dots(struct slice segment) {
	static const char *const dots[] = {".", "%2e", "..", ".%2e", "%2e.", "%2e%2e"};
	for (size_t i = 0; i < COUNT(dots); i++)
		if (slice_equal_nocase(segment, slice_of(dots[i]))) return true;
	return false;
}

static void assert_in_place(const char *rule, const char *url, const struct redirect *result) {
	struct slice path = slice_first(result->target, slice_until(result->target, '?')), rest = path;
	if (!slice_starts(path, result->fixed) || memchr(path.at, '\\', path.length) || memchr(path.at, '#', path.length))
		fail_msg("'%s' on '%s': '%.*s'", rule, url, (int)path.length, path.at);
	while (rest.length) {
		slice_drop(&rest, 1);
		const struct slice segment = slice_first(rest, slice_until(rest, '/'));
		if (is_dots(segment)) fail_msg("'%s' on '%s': '%.*s'", rule, url, (int)path.length, path.at);
		slice_drop(&rest, segment.length);
	}
}

static void a_path_begins_as_its_rule_says_and_has_no_dots(void **state) {
	(void)state;
	static const char *const to[] = {":a", ":b", ":c", ":splat", "/", "/", ".", "x", "%2e", "-", ";", "up/"};
	static const char *const in_path[] = {".", ".", "-", "/", "x", "..", "%", "2e", "%2e", ";", "\\", "y"};
	static const char *const in_query[] = {".", ".", "%2e", "%2E", "/",   "%2f", "\\", "%5c", "%25", "2e",  "%00",
										   ";", "x", "?",   "%",   "%c0", "%ae", "+",  "#",   "&b=", "&c=", "%252e"};
	unsigned applied = 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		char line[TEXT], url[TEXT], buffer[REDIRECT_TARGET_MAX];
		struct text rule = text_begin(line, TEXT), asked = text_begin(url, TEXT);
		struct told told;
		struct redirect result;
		const bool upstream = random_below(2);
		text_add(&rule, SLICE("/x/:a/* b=:b c=:c "));
		text_add(&rule, upstream ? SLICE("http://127.0.0.1/up") : SLICE("/up"));
		add_pieces(&rule, to, COUNT(to), 8);
		if (upstream && !random_below(4)) text_add(&rule, SLICE("?q=:b"));
		text_add(&rule, random_below(2) ? SLICE(" 200") : SLICE(" 200!"));
		text_add_char(&rule, '\0');
		text_add(&asked, SLICE("/x/"));
		add_pieces(&asked, in_path, COUNT(in_path), 4);
		text_add_char(&asked, '/');
		add_pieces(&asked, in_path, COUNT(in_path), 6);
		text_add(&asked, SLICE("?b="));
		add_pieces(&asked, in_query, COUNT(in_query), 5);
		text_add(&asked, SLICE("&c="));
		add_pieces(&asked, in_query, COUNT(in_query), 5);
		text_add_char(&asked, '\0');
		assert_false(rule.overflow || asked.overflow);
		struct redirect_rules *rules = parse(line, &told);
		if (ask(rules, url, buffer, &result) && !result.refused) {
			assert_in_place(line, url, &result);
			applied++;
		}
		redirect_rules_free(rules);
	}
	assert_true(applied > ROUNDS / 10);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parameter_stays_in_its_segment),
		cmocka_unit_test(a_parameter_of_dots_counts_as_missing),
		cmocka_unit_test(names_do_not_join_to_a_segment_of_dots),
		cmocka_unit_test(a_segment_of_dots_in_a_rule_is_told),
		cmocka_unit_test(a_path_begins_as_its_rule_says_and_has_no_dots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
