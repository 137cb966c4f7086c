/* test_redirects.c - the file _redirects. */
#include "gatling/site/rules/redirect_rules.h"

#include <errno.h>
#include <time.h>

#include "tests/unit/check.h"
#include "tests/unit/told.h"

enum { ROUNDS = 2000 };

struct error_case {
	const char *text;
	unsigned line;
	const char *why; /* part of the message */
};

static struct redirect_rules *redirects_of(const char *text) {
	struct told told = nothing_told;
	struct redirect_rules *rules = redirect_rules_parse(slice_of(text), &told.report);
	if (!rules || told.count) fail_msg("line %u: %s", told.first.line, told.first.text);
	return rules;
}

/* Returns "status target", "status! target", or "". url: a decoded path with its query. */
static const char *redirect(const struct redirect_rules *rules, const char *host, const char *url, bool forced_only) {
	static char out[REDIRECT_TARGET_MAX + 16], buffer[REDIRECT_TARGET_MAX];
	const char *question = strchr(url, '?');
	struct redirect_request request = {.path = slice_of(url), .any_scheme = true};
	struct redirect result;
	if (host) request.host = slice_of(host);
	if (question) {
		request.query = slice_of(question);
		request.path.length -= request.query.length;
	}
	out[0] = '\0';
	if (redirect_rules_match(rules, &request, forced_only, buffer, &result))
		snprintf(out, sizeof out, "%d%s %.*s", result.status, result.forced ? "!" : "", (int)result.target.length,
				 result.target.at);
	return out;
}

struct redirect_case {
	const char *rules, *host, *url, *wanted;
};

static void check_redirects(const struct redirect_case *cases, size_t count) {
	for (size_t i = 0; i < count; i++) {
		const struct redirect_case *c = &cases[i];
		struct redirect_rules *rules = redirects_of(c->rules);
		const char *got = redirect(rules, c->host, c->url, false);
		if (strcmp(got, c->wanted) != 0) fail_msg("'%s' on '%s': '%s', not '%s'", c->rules, c->url, got, c->wanted);
		redirect_rules_free(rules);
	}
}

static void the_documents_examples_of_redirects_work(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/home              /", NULL, "/home", "301 /"},
		{"/blog/my-post.php  /blog/my-post # moved", NULL, "/blog/my-post.php", "301 /blog/my-post"},
		{"/cuties            https://www.petsofnetlify.com", NULL, "/cuties", "301 https://www.petsofnetlify.com"},
		{"/authors/c%C3%A9line /authors/about-c%C3%A9line", NULL, "/authors/c\xC3\xA9line",
		 "301 /authors/about-c%C3%A9line"},
		{"/my-redirect  /  302", NULL, "/my-redirect", "302 /"},
		{"/ecommerce  /store-closed  404", NULL, "/ecommerce", "404 /store-closed"},
		{"/pass-through /index.html 200", NULL, "/pass-through", "200 /index.html"},
		{"/en/* /en/404.html 404", NULL, "/en/x/y", "404 /en/404.html"},
		{"/news/:month/:date/:year/:slug  /blog/:year/:month/:date/:slug", NULL, "/news/02/12/2004/my-story",
		 "301 /blog/2004/02/12/my-story"},
		{"/news/*  /blog/:splat", NULL, "/news/2004/01/10/my-story", "301 /blog/2004/01/10/my-story"},
		{"/news/*  /blog/:splat", NULL, "/news", "301 /blog/"},
		{"/store id=:id  /blog/:id  301", NULL, "/store?id=my-blog-post", "301 /blog/my-blog-post"},
		{"/store id=:id  /blog/:id  301", NULL, "/store", ""},
		{"/articles id=:id tag=:tag /posts/:tag/:id 301", NULL, "/articles?tag=t&x=1&id=7", "301 /posts/t/7"},
		{"/articles id=:id tag=:tag /posts/:tag/:id 301", NULL, "/articles?id=7", ""},
		{"/ page=news /news", NULL, "/?page=news", "301 /news"},
		{"/ page=news /news", NULL, "/?page=new", ""},
		{"/ _escaped_fragment_=/about /about", NULL, "/?_escaped_fragment_=/about", "301 /about"},
		{"http://blog.yoursite.com/* https://www.yoursite.com/blog/:splat 301!", "blog.yoursite.com", "/a/b",
		 "301! https://www.yoursite.com/blog/a/b"},
		{"http://blog.yoursite.com/* https://www.yoursite.com/blog/:splat 301!", "www.yoursite.com", "/a/b", ""},
		{"/* /index.html 200", NULL, "/any/thing", "200 /index.html"},
		{"/querystrings /?query=string 301", NULL, "/querystrings?a=b", "301 /?query=string"},
		{"/twitch https://twitch.tv", NULL, "/twitch", "301 https://twitch.tv"},
		{"/page/ /page2/#fragment 301", NULL, "/page/", "301 /page2/#fragment"},
		{"/blog/* https://blog.my.domain/:splat", NULL, "/blog/x", "301 https://blog.my.domain/x"},
		{"/products/:code/:name /products?code=:code&name=:name", NULL, "/products/7/tea pot&x",
		 "301 /products?code=7&name=tea%20pot%26x"},
		{"/movies/:title /media/:title", NULL, "/movies/x", "301 /media/x"},
		{"/a /b 200\n/b /c 200", NULL, "/a", "200 /b"},
		{"/donate source=:source email=:email /donate/usa?source=:source&email=:email 302", NULL,
		 "/donate?source=a&email=b%40c", "302 /donate/usa?source=a&email=b%40c"},
		{"/test https://www.example.com/test=hello 301!", NULL, "/test", "301! https://www.example.com/test=hello"},
	};
	check_redirects(cases, COUNT(cases));
}

static void the_first_rule_that_matches_counts(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/a /1\n/* /2", NULL, "/a", "301 /1"},
		{"/a /1\n/* /2", NULL, "/b", "301 /2"},
		{"/a x=1 /1 307\n/a /2 308", NULL, "/a?x=1", "307 /1"},
		{"/a x=1 /1 307\n/a /2 308", NULL, "/a?x=2", "308 /2?x=2"},
		{"/a /1 303", NULL, "/A", ""},
		{"/a /1 410", NULL, "/a", "410 /1"},
	};
	check_redirects(cases, COUNT(cases));
}

static void a_parameter_is_the_same_however_it_is_written(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/a act=delete /no 404!", NULL, "/a?%61ct=delete", "404! /no"},
		{"/a act=delete /no 404!", NULL, "/a?act=%64elet%65", "404! /no"},
		{"/a act=delete /no 404!", NULL, "/a?act=show&act=delete", "404! /no"},
		{"/a act=delete /no 404!", NULL, "/a?act=delet", ""},
		{"/a act=delete /no 404!", NULL, "/a?act=deletee&act=Delete&act=delete%", ""},
		{"/a act= /no 404!", NULL, "/a?act", "404! /no"},
		{"/a q=b%20c /no", NULL, "/a?q=b+c", "301 /no"},
		{"/a q=b+c /no", NULL, "/a?q=b%20c", "301 /no"},
		{"/a q=b+c /no", NULL, "/a?q=b%2Bc", ""},
		{"/a q=:q /b?q=:q", NULL, "/a?%71=x%26y&q=z", "301 /b?q=x%26y"},
	};
	check_redirects(cases, COUNT(cases));
}

/* Returns the processor time of a question. */
static clock_t time_of(const char *text, const char *url) {
	struct redirect_rules *rules = redirects_of(text);
	const clock_t begun = clock();
	for (int i = 0; i < 10; i++) assert_string_equal(redirect(rules, NULL, url, false), "");
	const clock_t ended = clock();
	redirect_rules_free(rules);
	return ended - begun;
}

/* Fails if a request takes more than 200 times as long with many rules as with one. */
static void assert_not_long(const char *rule, const char *rules, const char *url) {
	const clock_t one = time_of(rule, url), all = time_of(rules, url);
	if (all > 200 * (one + CLOCKS_PER_SEC / 10000)) fail_msg("%d times as long", (int)(all / (one + 1)));
}

static void a_long_query_is_not_searched_for_each_rule(void **state) {
	(void)state;
	enum { RULES = 2000, QUERY = 8000 };
	char text[RULES * 24], url[QUERY], *at = text;
	for (int i = 0; i < RULES; i++) at += sprintf(at, "/a id=%d /%d\n", i, i);
	memset(url, '&', sizeof url);
	memcpy(url, "/a?", 3);
	url[sizeof url - 1] = '\0';
	assert_not_long("/a id=1 /1\n", text, url);
}

static void a_long_segment_is_not_compared_octet_by_octet(void **state) {
	(void)state;
	enum { RULES = 1000, PATH = 2000 };
	char text[RULES * 32], url[PATH], *at = text;
	for (int i = 0; i < RULES; i++) at += sprintf(at, "/:a/about/:b%d /%d\n", i, i);
	memset(url, 'x', sizeof url);
	url[0] = '/';
	memcpy(url + PATH - 8, "/abou/x", 8);
	assert_not_long("/:a/about/:b /1\n", text, url);
}

static void where_there_is_a_file_the_first_rule_has_to_be_forced(void **state) {
	(void)state;
	struct redirect_rules *rules =
		redirects_of("/a/b /1\n/a/* /2/:splat 302!\n/app/ /app/index.html 200!\n/* /index.html 200\n");
	assert_string_equal(redirect(rules, NULL, "/a/b", false), "301 /1");
	assert_string_equal(redirect(rules, NULL, "/a/b", true), "");
	assert_string_equal(redirect(rules, NULL, "/a/c", true), "302! /2/c");
	assert_string_equal(redirect(rules, NULL, "/app", true), "200! /app/index.html");
	assert_string_equal(redirect(rules, NULL, "/b", true), "");
	redirect_rules_free(rules);
	/* what is meant to hide files does so, wherever it is */
	rules = redirects_of("/* /index.html 200\n/secret/* /404.html 404!\n");
	assert_string_equal(redirect(rules, NULL, "/secret/x", true), "404! /404.html");
	assert_string_equal(redirect(rules, NULL, "/secret/x", false), "200 /index.html");
	assert_string_equal(redirect(rules, NULL, "/x", true), "");
	redirect_rules_free(rules);
}

static void a_placeholder_is_a_whole_segment_and_any_other_colon_itself(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/a/:post-id /b/:post-id", NULL, "/a/x-y", "301 /b/x-y"},
		{"/a/:1.html/c /b/:1.html", NULL, "/a/x/c", "301 /b/x"},
		{"/a/x:y /b", NULL, "/a/x:y", "301 /b"},
		{"/a/x:y /b", NULL, "/a/xz", ""},
		{"/a/: /b", NULL, "/a/:", "301 /b"},
		{"/a/: /b", NULL, "/a/x", ""},
		{"/a/* https://matrix.to/#/#room:matrix.org", NULL, "/a/x", "301 https://matrix.to/#/#room:matrix.org"},
		{"/a/* /Help:Contents", NULL, "/a/x", "301 /Help:Contents"},
		{"/a/:x /b/:xy/:x-z/:y/:x:x", NULL, "/a/1", "301 /b/1y/1-z/:y/11"},
		{"/a/:x/:xy /b/:xy/:xyz/:x", NULL, "/a/1/2", "301 /b/2/2z/1"},
		{"/a /v?t=12:30#:x", NULL, "/a", "301 /v?t=12:30#:x"},
		{"/a/:x https://h.test:8080/:x", NULL, "/a/1", "301 https://h.test:8080/1"},
		{"/a id=:post-id /b/:post-id", NULL, "/a?id=1", "301 /b/1"},
	};
	check_redirects(cases, COUNT(cases));
}

static void a_rule_without_a_target_keeps_the_path(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/admin/* 200!\n/* /index.html 200", NULL, "/admin/a b", "200! /admin/a%20b"},
		{"/admin/* 200", NULL, "/admin/x/", "200 /admin/x/"},
	};
	check_redirects(cases, COUNT(cases));
	static char path[REDIRECT_TARGET_MAX];
	struct redirect_rules *rules = redirects_of("/* 200!");
	memset(path, ' ', sizeof path - 1);
	path[0] = '/';
	assert_string_equal(redirect(rules, NULL, path, true), "503! "); /* it does not fit when it is encoded */
	redirect_rules_free(rules);
}

static void any_status_of_an_error_page_may_be_sent(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {{"/a /b 401", NULL, "/a", "401 /b"},
												 {"/a /b 418!", NULL, "/a", "418! /b"},
												 {"/a /b 500", NULL, "/a", "500 /b"},
												 {"/a /b 451", NULL, "/a", "451 /b"}};
	check_redirects(cases, COUNT(cases));
}

struct client {
	const char *language, *cookie;
};

static bool has_cookie(const void *context, struct slice name) {
	return slice_equal(name, slice_of(((const struct client *)context)->cookie));
}

static struct slice language(const void *context) { return slice_of(((const struct client *)context)->language); }

static void conditions_are_met_or_the_rule_is_skipped(void **state) {
	(void)state;
	static const struct {
		const char *rules;
		struct client client;
		const char *wanted;
		unsigned vary;
	} cases[] = {
		{"/a /b 302 Language=de", {"de", ""}, "/b", REDIRECT_VARY_LANGUAGE},
		{"/a /b 302 Language=de", {"DE-at", ""}, "/b", REDIRECT_VARY_LANGUAGE},
		{"/a /b 302 Language=de", {"deu", ""}, "", REDIRECT_VARY_LANGUAGE},
		{"/a /b 302 Language=de", {"", ""}, "", REDIRECT_VARY_LANGUAGE},
		{"/a /b 302 Language=en-gb,fr", {"en-GB", ""}, "/b", REDIRECT_VARY_LANGUAGE},
		{"/a /b 302 Language=en-gb,fr", {"en", ""}, "", REDIRECT_VARY_LANGUAGE},
		{"/a /b 302 Language=en-gb,fr", {"fr", ""}, "/b", REDIRECT_VARY_LANGUAGE},
		{"/a /b 302 Cookie=x,y", {"", "y"}, "/b", REDIRECT_VARY_COOKIE},
		{"/a /b 302 Cookie=x,y", {"", "Y"}, "", REDIRECT_VARY_COOKIE},
		{"/a /b 302 Language=de Cookie=x\n/a /c", {"de", ""}, "/c", REDIRECT_VARY_LANGUAGE | REDIRECT_VARY_COOKIE},
		{"/a /b 302 Language=de Cookie=x\n/a /c", {"fr", "x"}, "/c", REDIRECT_VARY_LANGUAGE},
		{"/a /c\n/z /b 302 Language=de", {"de", ""}, "/c", 0},
		{"/x /b 302 Language=de\n/a /c", {"de", ""}, "/c", 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buffer[REDIRECT_TARGET_MAX];
		struct redirect_rules *rules = redirects_of(cases[i].rules);
		const struct redirect_request request = {
			.path = SLICE("/a"), .language = language, .has_cookie = has_cookie, .context = &cases[i].client};
		struct redirect result;
		const bool applies = redirect_rules_match(rules, &request, false, buffer, &result);
		const struct slice got = applies ? result.target : SLICE("");
		if (!slice_equal(got, slice_of(cases[i].wanted)) || result.vary != cases[i].vary)
			fail_msg("case %zu: '%.*s', vary %u", i, (int)got.length, got.at, result.vary);
		redirect_rules_free(rules);
	}
}

static void the_scheme_of_a_pattern_counts(void **state) {
	(void)state;
	struct redirect_rules *rules = redirects_of("http://h.test/* https://h.test/:splat 301!\n"
												"https://h.test/old /new\n/x/* https://h.test/x/:splat\n");
	static const struct {
		const char *path, *wanted;
		bool secure;
	} cases[] = {{"/old", "https://h.test/old", false},
				 {"/old", "/new", true},
				 {"/y", "", true},
				 {"/x/y", "https://h.test/x/y", false},
				 {"/x/y", "", true}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buffer[REDIRECT_TARGET_MAX];
		struct redirect_request request = {
			.host = SLICE("h.test"), .path = slice_of(cases[i].path), .secure = cases[i].secure};
		struct redirect result;
		const bool applies = redirect_rules_match(rules, &request, false, buffer, &result);
		const struct slice got = applies ? result.target : SLICE("");
		if (!slice_equal(got, slice_of(cases[i].wanted))) fail_msg("case %zu: '%.*s'", i, (int)got.length, got.at);
	}
	redirect_rules_free(rules);
}

/* Returns the status of the redirect of a request for https://h.test/a, or http://, or either; or 0. */
static int status_of(const char *text, bool secure, bool any_scheme) {
	char buffer[REDIRECT_TARGET_MAX];
	struct redirect result;
	struct redirect_rules *rules = redirects_of(text);
	const struct redirect_request request = {
		.host = SLICE("h.test"), .path = SLICE("/a"), .secure = secure, .any_scheme = any_scheme};
	const bool found = redirect_rules_match(rules, &request, true, buffer, &result);
	redirect_rules_free(rules);
	return found ? result.status : 0;
}

static void a_redirect_to_the_other_scheme_is_none_to_itself(void **state) {
	(void)state;
	static const struct {
		const char *text;
		int http, https, any;
	} cases[] = {
		{"http://h.test/* https://h.test/:splat 301!", 301, 0, 301},
		{"/* https://h.test/:splat 301!", 301, 0, 0},
		{"/* http://h.test/:splat 301!", 0, 301, 0},
		{"https://h.test/* https://h.test/:splat 301!", 0, 0, 0},
		{"https://h.test/* https://www.h.test/:splat 301!", 0, 301, 301},
		{"http://h.test/* http://h.test/:splat 301!", 0, 0, 0},
		{"/* /:splat 301!", 0, 0, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const int http = status_of(cases[i].text, false, false), https = status_of(cases[i].text, true, false),
				  any = status_of(cases[i].text, false, true);
		if (http != cases[i].http || https != cases[i].https || any != cases[i].any)
			fail_msg("'%s': %d %d %d", cases[i].text, http, https, any);
	}
}

static void it_is_known_whether_a_rule_may_come_before_a_file(void **state) {
	(void)state;
	static const struct {
		const char *text;
		bool forced;
	} cases[] = {
		{"/a /1\n/* /index.html 200\n/b x=1 /c 302\n", false},
		{"/a /1 301!\n", true},
		{"/a /1\n/a x=1 /2 404!\n", true},
		{"/* fcgi://127.0.0.1:9/index.php\n", true}, /* is for the files that end in .php, too */
		{"/*.php fcgi://127.0.0.1:9:wrong\n", true}, /* refuses them */
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct told told = nothing_told;
		struct redirect_rules *rules = redirect_rules_parse(slice_of(cases[i].text), &told.report);
		assert_non_null(rules);
		if (redirect_rules_forced(rules) != cases[i].forced) fail_msg("'%s'", cases[i].text);
		redirect_rules_free(rules);
	}
}

static void a_query_is_passed_on_if_the_target_has_none(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/a /b", NULL, "/a?x=1&y=%20", "301 /b?x=1&y=%20"},
		{"/a /b", NULL, "/a?", "301 /b"},
		{"/a /b#f", NULL, "/a?x=1", "301 /b?x=1#f"},
		{"/a /b#f?", NULL, "/a?x=1", "301 /b?x=1#f?"},
		{"/a /b?", NULL, "/a?x=1", "301 /b?"},
		{"/a https://e.com", NULL, "/a?x=1", "301 https://e.com?x=1"},
		{"/a https://e.com/?z=:1", NULL, "/a?x=1", "301 https://e.com/?z=:1"},
		{"/a x=1 /b", NULL, "/a?x=1&y=2", "301 /b"},
		{"/a /b 200", NULL, "/a?x=1", "200 /b"},
		{"/a /b?c=d#e 200", NULL, "/a", "200 /b"},
		{"/a /b", NULL, "/a?x=\"<\\>\xC3%zz%2", "301 /b?x=%22%3C%5C%3E%C3%25zz%252"},
	};
	check_redirects(cases, COUNT(cases));
}

static void it_is_known_whether_only_host_and_path_have_led_to_a_rule(void **state) {
	(void)state;
	static const struct {
		const char *rules;
		bool by_path, has_query;
	} cases[] = {
		{"/* /x/:splat 301!", true, false},
		{"/* /x?y=:splat 301!", true, true},
		{"/b /x 301!\n/a /y 301!", true, false},
		{"/a z=:z /x 301!\n/* /y 301!", false, false},
		{"/a a=:z /x 301!", false, false},
		{"/a /x 301! Language=de\n/a /y 301!", false, false},
		{"/a /x 301! Cookie=c\n/a /y 301!", false, false},
		{"https://h/a http://h/x 301!\n/a /y 301!", false, false},
		{"/a /x 200\n/a /denied 403!", false, false},
		{"/a /a 301!\n/* /y 301!", false, false}, /* it leads to itself */
		{"/b z=:z /x 301!\n/b /x 301! Cookie=c\n/a /y 301!", true, false},
	};
	char buffer[REDIRECT_TARGET_MAX];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct redirect_rules *rules = redirects_of(cases[i].rules);
		const struct redirect_request request = {
			.host = SLICE("h"), .path = SLICE("/a"), .query = SLICE("?a=b"), .any_scheme = false};
		struct redirect result;
		assert_true(redirect_rules_match(rules, &request, true, buffer, &result));
		if (result.by_path != cases[i].by_path || result.has_query != cases[i].has_query)
			fail_msg("'%s': %d %d", cases[i].rules, result.by_path, result.has_query);
		redirect_rules_free(rules);
	}
}

static void a_query_is_added_to_a_target_as_when_it_is_filled_in(void **state) {
	(void)state;
	static const char *const queries[] = {"", "?", "?a=b", "?a b", "?%2e&\x7f\"'", "?//"};
	struct redirect_rules *rules = redirects_of("/* /x/:splat 301!");
	char buffer[REDIRECT_TARGET_MAX], joined[REDIRECT_TARGET_MAX];
	for (size_t i = 0; i < COUNT(queries); i++) {
		struct redirect_request request = {.path = SLICE("/a")};
		struct redirect without, with;
		struct slice url;
		assert_true(redirect_rules_match(rules, &request, true, joined, &without));
		const struct slice target = without.target;
		request.query = slice_of(queries[i]);
		assert_true(redirect_rules_match(rules, &request, true, buffer, &with));
		char other[REDIRECT_TARGET_MAX];
		assert_true(redirect_target_join(target, request.query, other, &url));
		if (!slice_equal(url, with.target)) fail_msg("'%s'", queries[i]);
	}
	memset(buffer, 'x', sizeof buffer);
	struct slice url;
	assert_true(redirect_target_join((struct slice){0}, (struct slice){buffer, sizeof buffer}, joined, &url));
	assert_false(redirect_target_join(SLICE("/"), (struct slice){buffer, sizeof buffer}, joined, &url));
	redirect_rules_free(rules);
}

static void what_is_filled_in_cannot_get_out_of_its_place(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/* /x/:splat", NULL, "/a\r\nSet-Cookie: b", "301 /x/a%0D%0ASet-Cookie:%20b"},
		{"/a/* /x/:splat", NULL, "/a/%3F#\x01\x7F\xFF", "301 /x/%253F%23%01%7F%FF"},
		{"/a q=:q /x/:q", NULL, "/a?q=b?c", "301 /x/b%3Fc"},
		{"/a q=:q /x?y=:q", NULL, "/a?q=b?c=d%0d%0A", "301 /x?y=b%3Fc=d%0d%0A"},
		{"/a q=:q /x/:q", NULL, "/a?q=%2e%2E.%2f%zz\\", "301 /x/%2e%2E.%2f%25zz%5C"},
		{"/a q=:q /x/:q/y", NULL, "/a?q", "301 /x//y"},
		{"/:a/* https://:a.example.com/:splat", NULL, "/evil.com/x", "301 https://evil.com.example.com/x"},
		{"/:a/* https://:a.example.com/:splat", NULL, "/a@b/x", ""},
		{"/:a/* https://:a.example.com/:splat", NULL, "/a:80/x", ""},
		{"/* https://:splat.example.com/", NULL, "/evil.com/", ""},
		{"/* https://:splat.example.com/", NULL, "/", ""},
		{"/a h=:h https://:h.example.com/", NULL, "/a?h=evil.com%2f", ""},
		{"/a h=:h https://:h.example.com/", NULL, "/a?h=b", "301 https://b.example.com/"},
		{"http://:p.old.dev/* https://:p.new.dev/:splat", "Shop.old.dev", "/x", "301 https://shop.new.dev/x"},
	};
	check_redirects(cases, COUNT(cases));
}

static void a_path_keeps_the_characters_that_a_segment_may_have(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/a/* /x/:splat", NULL, "/a/;s=12/a,b(c)!$'*+=@:~&d/", "301 /x/;s=12/a,b(c)!$'*+=@:~&d/"},
		{"/a/* https://e.com/:splat", NULL, "/a/b:c@d;e", "301 https://e.com/b:c@d;e"},
		{"/a/* /x/:splat", NULL, "/a/[\"<>\\^`{|}%3B#", "301 /x/%5B%22%3C%3E%5C%5E%60%7B%7C%7D%253B%23"},
		{"/a/* /:splat", NULL, "/a/@evil.com:80/", "301 /@evil.com:80/"},
		{"/a/* /:splat", NULL, "/a/javascript:x", "301 /javascript:x"},
		{"/a/* /x?y=:splat#:splat", NULL, "/a/;b&c=d+@:", "301 /x?y=%3Bb%26c%3Dd%2B%40%3A#%3Bb%26c%3Dd%2B%40%3A"},
		{"/a/* https://e.com?y=:splat", NULL, "/a/b&c=d", "301 https://e.com?y=b%26c%3Dd"},
		{"/a/* /x/:splat 200", NULL, "/a/b;c", "200 /x/b;c"},
	};
	check_redirects(cases, COUNT(cases));
}

static void a_local_target_never_becomes_another_host(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/* /:splat", NULL, "//evil.com", "301 /evil.com"},
		{"/* /:splat", NULL, "////evil.com/%2f..", "301 /evil.com/%252f.."},
		{"/go/* /:splat", NULL, "/go/\\evil.com", "301 /%5Cevil.com"},
		{"/go/* /:splat", NULL, "/go//evil.com", "301 /evil.com"},
		{"/go/* /:splat/evil.com", NULL, "/go/", "301 /evil.com"},
		{"/go* /:splat", NULL, "/go//evil.com", "301 /evil.com"},
		{"/go/* /:splat", NULL, "/go/\t/evil.com", "301 /%09/evil.com"},
		{"/go u=:u /:u", NULL, "/go?u=//evil.com", "301 /%2F%2Fevil.com"},
		{"/go u=:u /:u", NULL, "/go?u=/\\evil.com", "301 /%2F%5Cevil.com"},
		{"/go u=:u /:u/evil.com", NULL, "/go?u=", "301 /evil.com"},
		{"/go/* /:splat 200", NULL, "/go//x", "200 /x"},
	};
	check_redirects(cases, COUNT(cases));
	/* paths from clients are normalised, and the client is there already */
	struct redirect_rules *rules = redirects_of("/* /:splat");
	assert_string_equal(redirect(rules, NULL, "/evil.com", false), "");
	redirect_rules_free(rules);
}

static void a_redirect_to_where_the_client_is_is_passed_over(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/trailing /trailing/ 301", NULL, "/trailing", "301 /trailing/"},
		{"/trailing /trailing/ 301", NULL, "/trailing/", ""},
		{"/notrailing/ /notrailing 301", NULL, "/notrailing/", "301 /notrailing"},
		{"/notrailing/ /notrailing 301", NULL, "/notrailing", ""},
		{"/a /%61", NULL, "/a", ""},
		{"/a /b/../a", NULL, "/a", ""},
		{"/a /a?x=1#y", NULL, "/a", ""},
		{"/* /:splat\n/a /b", NULL, "/a", "301 /b"},
		{"/* https://www.e.com/:splat", "www.e.com", "/x", ""},
		{"/* https://www.e.com/:splat", "WWW.e.com:443", "/x", ""},
		{"/* https://www.e.com/:splat", "e.com", "/x", "301 https://www.e.com/x"},
		{"/* https://www.e.com/:splat", NULL, "/x", "301 https://www.e.com/x"},
		{"/* https://www.e.com:8443/:splat", "www.e.com:8080", "/x", "301 https://www.e.com:8443/x"},
		{"/* https://www.e.com", "www.e.com", "/", ""},
		{"/a id=:id /a?item=:id", NULL, "/a?id=7", "301 /a?item=7"},
		{"/a id=:id /a?x=1&id=:id", NULL, "/a?id=7", ""},
		{"/assets/* /assets/:splat 200\n/* /index.html 200", NULL, "/assets/x", "200 /assets/x"},
	};
	check_redirects(cases, COUNT(cases));
}

static void a_redirect_that_has_led_there_does_not_lead_on(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"/* /en/:splat 302", NULL, "/x", "302 /en/x"},
		{"/* /en/:splat 302\n/en/x /y", NULL, "/en/x", "301 /y"},
		{"/* /en/:splat 302", NULL, "/en", ""},
		{"/* /en/:splat 302", NULL, "/end", "302 /en/end"},
		{"/b/* /b/c/:splat", NULL, "/b/x", "301 /b/c/x"},
		{"/b/* /b/c/:splat", NULL, "/b/c/x", ""},
		{"/:x /b/:x", NULL, "/b", "301 /b/b"},
		{"/* https://e.com/en/:splat", NULL, "/en/x", "301 https://e.com/en/en/x"},
	};
	check_redirects(cases, COUNT(cases));
}

static void a_target_that_does_not_fit_is_passed_over(void **state) {
	(void)state;
	struct redirect_rules *rules = redirects_of("/* /x/:splat\n/* /y");
	char path[REDIRECT_TARGET_MAX + 1];
	memset(path, 'a', sizeof path);
	path[0] = '/';
	path[REDIRECT_TARGET_MAX - 2] = '\0'; /* the longest that fits behind "/x" */
	assert_int_equal(strlen(redirect(rules, NULL, path, false)), 4 + REDIRECT_TARGET_MAX);
	path[REDIRECT_TARGET_MAX - 2] = 'a';
	path[REDIRECT_TARGET_MAX - 1] = '\0';
	assert_string_equal(redirect(rules, NULL, path, false), "301 /y");
	redirect_rules_free(rules);
}

static void a_redirect_goes_without_a_query_that_does_not_fit(void **state) {
	(void)state;
	struct redirect_rules *rules = redirects_of("/a https://e.com/login 302!");
	char url[REDIRECT_TARGET_MAX / 3 + 4];
	memset(url, '"', sizeof url); /* three octets each in a target */
	memcpy(url, "/a?", 3);
	url[sizeof url - 1] = '\0';
	assert_string_equal(redirect(rules, NULL, url, true), "302! https://e.com/login");
	redirect_rules_free(rules);
}

static int is_script(const void *context, struct slice path) {
	(void)context;
	return slice_equal(path, SLICE("/x.php")) ? 0 : ENOENT;
}

/* They would be sent otherwise, or refused where they are meant to run. */
static void scripts_run_though_a_rule_above_leaves_the_path_to_a_file(void **state) {
	(void)state;
	static const char *const cases[] = {"/* /index.html 200\n/*.php fcgi://127.0.0.1\n",
										"/* /index.html 200\n/* fcgi://127.0.0.1/index.php\n",
										"/* /index.html 200\n/*.php fcgi://127.0.0.1:wrong\n"};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buffer[REDIRECT_TARGET_MAX];
		struct told told = nothing_told;
		struct upstreams_allowed allowed = {.count = 0};
		struct redirect result;
		const struct redirect_request php = {.path = SLICE("/x.php"), .find_file = is_script},
									  page = {.path = SLICE("/x.html"), .find_file = is_script};
		assert_true(upstreams_allow(&allowed, "127.0.0.1"));
		told.report.upstreams = &allowed;
		struct redirect_rules *rules = redirect_rules_parse(slice_of(cases[i]), &told.report);
		assert_non_null(rules);
		redirect_rules_permit(rules, true);
		assert_true(redirect_rules_match(rules, &php, true, buffer, &result));
		assert_true(i == 2 ? result.refused : result.upstream != NULL);
		assert_false(redirect_rules_match(rules, &page, true, buffer, &result));
		redirect_rules_free(rules);
	}
}

static void a_forced_rule_whose_target_does_not_fit_refuses(void **state) {
	(void)state;
	struct redirect_rules *rules = redirects_of("/a/* /longer/:splat 200!\n/* /y 200");
	char path[REDIRECT_TARGET_MAX + 1];
	memset(path, 'a', sizeof path);
	memcpy(path, "/a/", 3);
	path[REDIRECT_TARGET_MAX] = '\0';
	assert_string_equal(redirect(rules, NULL, path, true), "503! ");
	redirect_rules_free(rules);
}

static void of_redirects_what_is_wrong_is_left_out_and_the_rest_stays(void **state) {
	(void)state;
	struct told told = nothing_told;
	struct redirect_rules *rules = redirect_rules_parse(
		SLICE("/a /b\n/ /china 302 Country=ch,tw\n/ x=1 y=:y /x Language=en\n/admin/* /admin/:splat 200! Role=admin\n"
			  "/api/* https://e.com/:splat 200\nX-Frame-Options: DENY\n/*/x/* /y\n/c /d # e\n"),
		&told.report);
	assert_non_null(rules);
	assert_int_equal(told.count, 6);
	assert_int_equal(told.first.line, 2);
	assert_non_null(strstr(told.first.text, "Country"));
	assert_memory_equal(told.first.whole.at, "/ /china 302 Country=ch,tw", told.first.whole.length);
	assert_string_equal(redirect(rules, NULL, "/", false), "");
	assert_string_equal(redirect(rules, NULL, "/admin/x", true), "");
	assert_string_equal(redirect(rules, NULL, "/a", false), "301 /b");
	assert_string_equal(redirect(rules, NULL, "/c", false), "301 /d");
	redirect_rules_free(rules);
}

static void redirect_lines_end_as_those_of_headers_do(void **state) {
	(void)state;
	static const struct redirect_case cases[] = {
		{"\xEF\xBB\xBF/a /b\r\n\r\n# c\r\n\t /c  \t/d 302 # e\r\n", NULL, "/a", "301 /b"},
		{"\xEF\xBB\xBF/a /b\r\n\r\n# c\r\n\t /c  \t/d 302 # e\r\n", NULL, "/c", "302 /d"},
		{"", NULL, "/", ""},
		{"\n#", NULL, "/", ""},
	};
	check_redirects(cases, COUNT(cases));
}

static void a_mistake_in_redirects_is_told_with_its_line(void **state) {
	(void)state;
	static const struct error_case cases[] = {
		{"/a", 1, "no path or URL"},
		{"# x\n/a 301\n", 2, "'301' is neither"},
		{"/a # /b\n", 1, "no path or URL"},
		{"a /b\n", 1, "does not begin with"},
		{"/a?id=:id /b\n", 1, "has a query"},
		{"/a id /b\n", 1, "'id' is neither"},
		{"/a =1 /b\n", 1, "'=1' is neither"},
		{"/a x=1&y=2 /b\n", 1, "'x=1&y=2' has a '&'"},
		{"/a x=1 x=2 /b\n", 1, "'x=2' is there twice"},
		{"/:x x=:x /b\n", 1, "'x=:x' has a name that is there twice"},
		{"/a x=:x y=:x /b\n", 1, "'y=:x' has a name that is there twice"},
		{"/* x=:splat /b\n", 1, "twice"},
		{"/a a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1 q=1 /b\n", 1, "'q=1' is one"},
		{"/a 410\n", 1, "'410' has no page in front of it, which need not exist: write /410.html 410"},
		{"/a 503!\n", 1, "write /503.html 503!"},
		{"/a /b 300\n", 1, "'300' is not a status"},
		{"/a /b 3011\n", 1, "not a status"},
		{"/a /b 30\n", 1, "not a status"},
		{"/a /b !\n", 1, "not a status"},
		{"/a /b 301!!\n", 1, "not a status"},
		{"/a /b permanent\n", 1, "not a status"},
		{"/a /b 301 302\n", 1, "'302' is not a condition"},
		{"/a /b 301 =x\n", 1, "'=x' is not a condition"},
		{"\n/a https://:b.e.com\n", 2, "has the name :b"},
		{"/a /b 301 Country=de\n", 1, "the condition Country is never met"},
		{"/a 200! Role=admin\n", 1, "the condition Role is never met"},
		{"/a /b 301 Device=x\n", 1, "the condition Device is not supported"},
		{"/a /b 301 language=de\n", 1, "the condition language is not supported"},
		{"/a /b Language=de 301\n", 1, "needs a status in front of it"},
		{"/a /b 301 Language=de Language=fr\n", 1, "second condition of its kind"},
		{"/a /b 301 Cookie=\n", 1, "has no value"},
		{"/a /b 301\n/a/ /c\n", 2, "it never applies: line 1 comes first"},
		{"/a/:x /b 404\n/c /d\n/a/:y /c 301!\n", 3, "it never applies: line 1 comes first"},
		{"/a/* /a/b\n/a/c /d\n", 2, "it never applies: line 1 comes first"},
		{"http://e.com/* /x\nhttp://e.com/a /d\n", 2, "it never applies: line 1 comes first"},
		{"/a\t/b\t30x\n", 1, "'30x' is not a status"},
		{"/a https://e.com/ 200\n", 1, "nothing is passed on to e.com:443 without --upstream https://e.com"},
		{"/api/* https://api.e.com:8443/:splat 200!\n", 1, "without --upstream https://api.e.com:8443"},
		{"/a http://named.e.com/ 200\n", 1, "without --upstream named.e.com:80"},
		{"/a https://named.e.com:8080/ 200\n", 1, "without --upstream https://named.e.com:8080"},
		{"/a http://tls.e.com/ 200\n", 1, "without --upstream tls.e.com:80"},
		{"/a https://127.0.0.1/ 200\n", 1, "without --upstream https://127.0.0.1"},
		{"/a https://[2001:db8::1]/ 200\n", 1, "without --upstream https://[2001:db8::1]"},
		{"/a https://e.com 404\n", 1, "redirect there with 301 or 302"},
		{"/a http://e..com/ 200\n", 1, "a host that is neither a name nor an IP address"},
		{"/a http://10.1/ 200\n", 1, "a host that is neither a name nor an IP address"},
		{"/a http://::1/ 200\n", 1, "HOST:PORT"},
		{"/a https://unix:/run/x.sock 200\n", 1, "to which there is no https"},
		{"/a https://tls.e.com,tls.e.com:444/ 200\n", 1, "https is to one host"},
		{"/:a/* http://:a.1/ 200\n", 1, "HOST:PORT"},
		{"/:a/* https://:a.e.com/ 200\n", 1, "HOST:PORT"},
		{"/a http://127.0.0.1:0/ 200\n", 1, "an address that is not HOST:PORT"},
		{"/a http://127.0.0.1:65536/ 200\n", 1, "an address that is not HOST:PORT"},
		{"/a http://[::1/ 200\n", 1, "an address that is not HOST:PORT"},
		{"/a http://127.0.0.1/%x 200\n", 1, "broken percent-encoding"},
		{"/a http://127.0.0.1:81/ 200\n", 1, "without --upstream 127.0.0.1:81"},
		{"/a http://127.0.0.1:80,[2001:db8::1]/ 200\n", 1, "without --upstream [2001:db8::1]:80"},
		{"/a http://unix:/run/x.sock:x 200\n", 1, "a path without a '/' in front"},
		{"/a http://unix:run/x 200\n", 1, "no absolute path of a socket"},
		{"/a http://unix:/run/../x 200\n", 1, "no absolute path of a socket"},
		{"/a http://unix:/run/ 200\n", 1, "that ends with '/': write a ':'"},
		{"/a/* http://unix:/run/a.sock/:splat 200\n", 1, "that ends with '/': write a ':'"},
		{"/a/* http://unix:/run/x/..:/:splat 200\n", 1, "whose name begins with '.'"},
		{"/a http://unix:/run/x/.a.sock 200\n", 1, "whose name begins with '.'"},
		{"/a http://127.0.0.1:81/x#y 200\n", 1, "has a fragment"},
		{"/a fcgi://127.0.0.1/x.php?y#z 200\n", 1, "has a fragment"},
		{"/a http://unix:/run/deeper/x.sock 200\n", 1, "/run/deeper/x.sock without --upstream unix:/run/deeper/x.sock"},
		{"/a fcgi://unix:/x 200\n", 1, "/x without --upstream unix:/x"},
		{"/a fcgi://127.0.0.1:80 301\n", 1, "is no URL to redirect to"},
		{"/a fcgi://127.0.0.1:9000:/x\n", 1, "has a ':' behind its address, which only unix:PATH needs: remove it"},
		{"/a http://[::1]:80:/x 200\n", 1, "has a ':' behind its address"},
		{"/a http://127.0.0.1: 200\n", 1, "has a ':' behind its address"},
		{"/a fcgi://127.0.0.1\n", 1, "without --upstream 127.0.0.1:9000"},
		{"/a scgi://127.0.0.1 200\n", 1, "has no port"},
		{"/a fcgi:///x 200\n", 1, "has no host"},
		{"/a ftp://127.0.0.1/ 200\n", 1, "is neither a parameter"},
		{"/a //e.com\n", 1, "two slashes"},
		{"/a /\\e.com\n", 1, "two slashes"},
		{"/a https:///x\n", 1, "has no host"},
		{"/a https://?x\n", 1, "has no host"},
		{"/a https://u@e.com/x\n", 1, "an invalid host"},
		{"/a https://e.com\\x\n", 1, "an invalid host"},
		{"/* https://:splat\n", 1, "without '.'"},
		{"/* https://e.com:splat\n", 1, "without '.'"},
		{"/:a/* https://:a./:splat\n", 1, "without '.'"},
		{"/:a/* https://:a.:8080/:splat\n", 1, "without '.'"},
		{"/:a/:b https://:a.:b/x\n", 1, "without '.'"},
		{"/:a/* https://x.:a\n", 1, "without '.'"},
		{"/a /b%\n", 1, "broken percent-encoding"},
		{"/team/john%smith /x\n", 1, "percent-encoding is broken"},
		{"/a/(.*) /b/$1\n", 1, "use * and :name"},
		{"/a/([0-9]+) /b\n", 1, "use * and :name"},
		{"/a/?(.*)$ /b\n", 1, "use * and :name"},
		{"/a(1)/:b(c)/%28.* /b\n/c$/d /e\n//\n", 3, "empty segment"},
		{"/a /b\x01\n", 1, "control character"},
		{"/a /b\rc\n", 1, "control character"},
		{"  X-Frame-Options: DENY\n", 1, "fields belong in the file _headers"},
	};
	struct upstreams_allowed allowed = {.count = 0};
	assert_true(upstreams_allow(&allowed, "named.e.com:8080"));
	assert_true(upstreams_allow(&allowed, "https://tls.e.com"));
	assert_true(upstreams_allow(&allowed, "127.0.0.0/8:80"));
	assert_true(upstreams_allow(&allowed, "/run/"));

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct told told = nothing_told;
		told.report.upstreams = &allowed;
		redirect_rules_free(redirect_rules_parse(slice_of(cases[i].text), &told.report));
		if (told.count != 1 || told.first.line != cases[i].line || !strstr(told.first.text, cases[i].why))
			fail_msg("case %zu: told %u, line %u, '%s'", i, told.count, told.first.line, told.first.text);
	}
	struct told told = nothing_told;
	redirect_rules_free(redirect_rules_parse((struct slice){.at = "/a /b\n/c\0 /d", .length = 12}, &told.report));
	assert_int_equal(told.first.line, 2);
}

/* Returns whether a rule applies to the path, and whether it then passes the request on, or refuses it. */
static const char *passing(const struct redirect_rules *rules, const char *path, bool forced_only) {
	static char buffer[REDIRECT_TARGET_MAX];
	const struct redirect_request request = {.path = slice_of(path)};
	struct redirect result;
	if (!redirect_rules_match(rules, &request, forced_only, buffer, &result)) return "no rule";
	if (!result.upstream == !result.refused) return result.refused ? "both" : "another rule";
	return result.refused ? "refused" : "passed on";
}

static void rules_pass_requests_on_only_once_they_are_permitted_to(void **state) {
	(void)state;
	struct told told = nothing_told;
	struct upstreams_allowed allowed = {.count = 0};
	assert_true(upstreams_allow(&allowed, "127.0.0.1"));
	told.report.upstreams = &allowed;
	struct redirect_rules *rules =
		redirect_rules_parse(SLICE("/api/* http://127.0.0.1/ 200\n/forced http://127.0.0.1/ 200!\n/old /new\n"
								   "/app/* fcgi://127.0.0.1:9000/index.php\n"),
							 &told.report);
	assert_non_null(rules);
	assert_int_equal(told.count, 0);
	assert_true(redirect_rules_passing(rules));
	for (int i = 0; i < 5; i++) {
		const char *wanted = i % 2 ? "passed on" : "refused";
		if (i) redirect_rules_permit(rules, i % 2);
		assert_string_equal(passing(rules, "/api/x", false), wanted);
		assert_string_equal(passing(rules, "/forced", true), wanted);
		assert_string_equal(passing(rules, "/app/x", false), wanted);
		assert_string_equal(passing(rules, "/api/x", true), "no rule");
		assert_string_equal(passing(rules, "/old", false), "another rule");
		assert_false(redirect_rules_may_send(rules, SLICE("/lib/a.php")));
		assert_true(redirect_rules_may_send(rules, SLICE("/api/x")));
	}
	redirect_rules_free(rules);
	rules = redirects_of("/a /b\n/* /index.html 200\n");
	assert_false(redirect_rules_passing(rules));
	redirect_rules_free(rules);
}

static void a_rule_behind_one_for_all_paths_is_told_and_the_others_apply(void **state) {
	(void)state;
	static const char text[] = "/a /b 301\n/* /index.html 200\n/c /d 301\n/e /f 301!\n/* /g 200!\n/h /i 301!\n";
	struct told told = nothing_told;
	struct redirect_rules *rules = redirect_rules_parse(slice_of(text), &told.report);
	assert_int_equal(told.count, 4);
	assert_int_equal(told.first.line, 3);
	assert_int_equal(told.last.line, 6);
	assert_non_null(strstr(told.first.text, "line 2 comes first"));
	assert_string_equal(redirect(rules, NULL, "/a", false), "301 /b");
	assert_string_equal(redirect(rules, NULL, "/c", false), "200 /index.html");
	assert_string_equal(redirect(rules, NULL, "/e", true), "");
	assert_string_equal(redirect(rules, NULL, "/h", true), "");
	redirect_rules_free(rules);
}

static void rules_that_may_apply_are_not_said_to_be_hidden(void **state) {
	(void)state;
	static const char *const texts[] = {
		"/a x=1 /b\n/a /c",
		"/a /b 302 Language=de\n/a /c",
		"/* /a/:splat\n/a/b /c",
		"/* /new\n/new /c 200",
		"/* https://h.test/:splat\n/a /b 200",
		"http://h.test/* /x 404\n/a /b",
		"http://h.test/* /x 404\nhttps://h.test/a /b",
		"http://h.test/* /x 404\nhttp://g.test/a /b",
		"/a/b* /c 404\n/a/ /d",
		"/a/*/c /d 404\n/a/b /e",
		"/:x /d 404\n/a/b /e",
	};
	for (size_t i = 0; i < COUNT(texts); i++) redirect_rules_free(redirects_of(texts[i]));
}

static bool there(struct rules_report *report, struct slice path) {
	(void)report;
	return slice_equal(path, SLICE("/there"));
}

static void a_file_in_the_way_is_told_if_that_is_wanted(void **state) {
	(void)state;
	static const struct {
		const char *text;
		unsigned line;
	} cases[] = {{"/a /b\n/there /b\n", 2},       {"/there/ /b 404\n", 1}, {"/there /b 301!\n", 0},
				 {"/there /there.html 200\n", 0}, {"/:x /b\n", 0},         {"http://h.test/there /b\n", 0}};
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		struct told told = nothing_told;
		told.report.there = i % 2 ? there : NULL;
		redirect_rules_free(redirect_rules_parse(slice_of(cases[i / 2].text), &told.report));
		if (told.first.line != (i % 2 ? cases[i / 2].line : 0)) fail_msg("case %zu: line %u", i / 2, told.first.line);
	}
}

static void too_many_redirects_or_bytes_are_left_out(void **state) {
	(void)state;
	enum { LINES = 1000 * 1000, LINE = sizeof "/a /b\n" - 1 };
	struct told large = nothing_told, most = nothing_told;
	char *text = malloc(LINES * LINE);
	assert_non_null(text);
	for (size_t i = 0; i < LINES; i++) memcpy(text + i * LINE, "/a /b\n", LINE);
	assert_null(redirect_rules_parse((struct slice){.at = text, .length = LINES * LINE}, &large.report));
	assert_int_equal(large.first.line, 0);
	assert_non_null(strstr(large.first.text, "too large"));
	struct redirect_rules *rules =
		redirect_rules_parse((struct slice){.at = text, .length = LINE * (RULES_MAX + 1)}, &most.report);
	assert_non_null(rules);
	assert_int_equal(most.count, RULES_MAX); /* all but the first never apply */
	assert_int_equal(most.last.line, RULES_MAX + 1);
	redirect_rules_free(rules);
	free(text);
}

static void many_literal_rules_are_parsed_and_missed_quickly(void **state) {
	(void)state;
	static char text[RULES_MAX * 48];
	size_t n = 0;
	for (int i = 0; i < RULES_MAX; i++)
		n += (size_t)sprintf(text + n, "/products/number/%06d /shop/number/%06d\n", i, i);
	struct redirect_rules *rules = redirects_of(text);
	for (int i = 0; i < ROUNDS; i++) assert_string_equal(redirect(rules, NULL, "/products/number/004096/", false), "");
	assert_string_equal(redirect(rules, NULL, "/products/number/004095/", false), "301 /shop/number/004095");
	redirect_rules_free(rules);
}

/* A clock would tell nothing on a busy machine. */
static void rules_that_would_take_long_are_not_all_looked_at(void **state) {
	(void)state;
	static char text[RULES_MAX * 256], path[REDIRECT_TARGET_MAX];
	size_t n = 0;
	for (int i = 0; i < RULES_MAX; i++) n += (size_t)sprintf(text + n, "/a* /a:splat\n");
	struct redirect_rules *rules = redirects_of(text);
	memset(path, 'a', sizeof path - 8);
	path[0] = '/';
	assert_string_equal(redirect(rules, NULL, path, false), "503! ");
	assert_string_equal(redirect(rules, NULL, "/abc", false), "");
	redirect_rules_free(rules);
	struct told told = nothing_told;
	n = (size_t)sprintf(text, "/x /y\n");
	for (int i = 1; i < RULES_MAX / 2; i++) n += (size_t)sprintf(text + n, "/a /a?%0200d\n/b%d /a\n", i, i);
	n += (size_t)sprintf(text + n, "/y /x\n");
	redirect_rules_free(redirect_rules_parse(slice_of(text), &told.report));
	assert_int_equal(told.count, 0);
}

/* Writes a rule whose pattern is compared with a path of '-' a thousand times. Returns its end. */
static char *put_slow_rule(char *at, const char *rest) {
	at += sprintf(at, "/:x");
	memset(at, '-', 900);
	return at + 900 + sprintf(at + 900, "c/:y %s\n", rest);
}

/* Rules for programs that are refused protect the files that they match. */
static void a_file_that_takes_long_to_compare_is_protected(void **state) {
	(void)state;
	enum { RULES = 200 };
	static char text[RULES * 1024];
	char path[REDIRECT_TARGET_MAX], *at = text;
	struct told told = nothing_told;
	for (int i = 0; i < RULES; i++) at = put_slow_rule(at, "fcgi://127.0.0.1");
	struct redirect_rules *rules = redirect_rules_parse(slice_of(text), &told.report);
	assert_int_equal(told.count, RULES);
	memset(path, '-', sizeof path);
	path[0] = '/';
	assert_false(redirect_rules_may_send(rules, slice_first((struct slice){.at = path}, sizeof path - 1)));
	assert_true(redirect_rules_may_send(rules, slice_first((struct slice){.at = path}, 500)));
	redirect_rules_free(rules);
}

/* The parameters of a rule are looked for one by one, twice if its target leads to itself, and count so. */
static void a_query_that_is_made_to_be_slow_is_refused(void **state) {
	(void)state;
	enum { RULES = 10, QUERY = 8000 };
	char text[RULES * 512], url[QUERY], *at = text;
	for (int i = 0; i < RULES; i++) {
		at += sprintf(at, "/a");
		for (int n = 0; n < REDIRECT_PARAMETERS_MAX; n++) at += sprintf(at, " p%d=:p%d", n, n);
		at += sprintf(at, " /a?p0=:p0");
		for (int n = 1; n < REDIRECT_PARAMETERS_MAX; n++) at += sprintf(at, "&p%d=:p%d", n, n);
		*at++ = '\n';
	}
	sprintf(at, "/a /y?");
	struct redirect_rules *rules = redirects_of(text);
	memset(url, '&', sizeof url);
	memcpy(url, "/a?", 3);
	at = url + QUERY - 100;
	for (int n = 0; n < REDIRECT_PARAMETERS_MAX; n++) at += sprintf(at, "&p%d", n);
	assert_string_equal(redirect(rules, NULL, url, false), "503! ");
	memmove(url + 3, url + QUERY - 100, 100);
	assert_string_equal(redirect(rules, NULL, url, false), "301 /y?");
	redirect_rules_free(rules);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_documents_examples_of_redirects_work),
		cmocka_unit_test(the_first_rule_that_matches_counts),
		cmocka_unit_test(a_parameter_is_the_same_however_it_is_written),
		cmocka_unit_test(a_long_query_is_not_searched_for_each_rule),
		cmocka_unit_test(a_long_segment_is_not_compared_octet_by_octet),
		cmocka_unit_test(where_there_is_a_file_the_first_rule_has_to_be_forced),
		cmocka_unit_test(a_placeholder_is_a_whole_segment_and_any_other_colon_itself),
		cmocka_unit_test(a_rule_without_a_target_keeps_the_path),
		cmocka_unit_test(any_status_of_an_error_page_may_be_sent),
		cmocka_unit_test(conditions_are_met_or_the_rule_is_skipped),
		cmocka_unit_test(the_scheme_of_a_pattern_counts),
		cmocka_unit_test(a_redirect_to_the_other_scheme_is_none_to_itself),
		cmocka_unit_test(it_is_known_whether_a_rule_may_come_before_a_file),
		cmocka_unit_test(a_query_is_passed_on_if_the_target_has_none),
		cmocka_unit_test(it_is_known_whether_only_host_and_path_have_led_to_a_rule),
		cmocka_unit_test(a_query_is_added_to_a_target_as_when_it_is_filled_in),
		cmocka_unit_test(what_is_filled_in_cannot_get_out_of_its_place),
		cmocka_unit_test(a_path_keeps_the_characters_that_a_segment_may_have),
		cmocka_unit_test(a_local_target_never_becomes_another_host),
		cmocka_unit_test(a_redirect_to_where_the_client_is_is_passed_over),
		cmocka_unit_test(a_redirect_that_has_led_there_does_not_lead_on),
		cmocka_unit_test(a_target_that_does_not_fit_is_passed_over),
		cmocka_unit_test(a_redirect_goes_without_a_query_that_does_not_fit),
		cmocka_unit_test(scripts_run_though_a_rule_above_leaves_the_path_to_a_file),
		cmocka_unit_test(a_forced_rule_whose_target_does_not_fit_refuses),
		cmocka_unit_test(of_redirects_what_is_wrong_is_left_out_and_the_rest_stays),
		cmocka_unit_test(redirect_lines_end_as_those_of_headers_do),
		cmocka_unit_test(a_mistake_in_redirects_is_told_with_its_line),
		cmocka_unit_test(rules_pass_requests_on_only_once_they_are_permitted_to),
		cmocka_unit_test(a_rule_behind_one_for_all_paths_is_told_and_the_others_apply),
		cmocka_unit_test(rules_that_may_apply_are_not_said_to_be_hidden),
		cmocka_unit_test(a_file_in_the_way_is_told_if_that_is_wanted),
		cmocka_unit_test(too_many_redirects_or_bytes_are_left_out),
		cmocka_unit_test(many_literal_rules_are_parsed_and_missed_quickly),
		cmocka_unit_test(rules_that_would_take_long_are_not_all_looked_at),
		cmocka_unit_test(a_file_that_takes_long_to_compare_is_protected),
		cmocka_unit_test(a_query_that_is_made_to_be_slow_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
