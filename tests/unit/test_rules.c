/* test_rules.c - patterns for paths, and the file _headers. */
#include "gatling/site/rules/header_rules.h"
#include "gatling/site/rules/pattern.h"
#include "tests/unit/check.h"
#include "tests/unit/told.h"

enum { ROUNDS = 100 };

/* --- patterns --- */

/* Returns the values of the names in a pattern as "name=value name=value", in their order, or NULL if it does not
 * match. */
static const char *match(const char *text, enum pattern_mode mode, const char *host, const char *path,
						 const char *names) {
	static char out[512];
	struct pattern pattern;
	struct pattern_subject subject;
	struct pattern_captures captures;
	const char *wrong = pattern_compile(&pattern, slice_of(text), mode);
	if (wrong) fail_msg("'%s': %s", text, wrong);
	pattern_subject(&subject, host ? slice_of(host) : (struct slice){0}, slice_of(path), mode);
	bool matches = pattern_match(&pattern, &subject, &captures);
	struct slice rest = slice_of(names), name;
	size_t n = 0;
	out[0] = '\0';
	while (matches && slice_next_element(&rest, &name)) {
		int i = pattern_capture(&pattern, name);
		if (i < 0) fail_msg("'%s' has no :%.*s", text, (int)name.length, name.at);
		struct slice value = captures.value[i];
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s=%.*s", n ? " " : "", (int)name.length, name.at,
							  (int)value.length, value.at);
	}
	pattern_free(&pattern);
	return matches ? out : NULL;
}

struct match_case {
	const char *pattern, *path, *names, *wanted; /* NULL: no match */
};

static void check_matches(enum pattern_mode mode, const struct match_case *cases, size_t count) {
	for (size_t i = 0; i < count; i++) {
		const struct match_case *c = &cases[i];
		const char *got = match(c->pattern, mode, NULL, c->path, c->names);
		if (!got != !c->wanted || (got && strcmp(got, c->wanted) != 0))
			fail_msg("'%s' on '%s': %s, not %s", c->pattern, c->path, got ? got : "none",
					 c->wanted ? c->wanted : "none");
	}
}

static void text_matches_itself_in_its_case_and_whole(void **state) {
	(void)state;
	static const struct match_case cases[] = {
		{"/", "/", "", ""},           {"/a", "/a", "", ""},
		{"/a", "/A", "", NULL},       {"/a", "/ab", "", NULL},
		{"/ab", "/a", "", NULL},      {"/a", "/a/", "", NULL},
		{"/a/", "/a", "", NULL},      {"/secure/page", "/secure/page", "", ""},
		{"/", "", "", NULL},          {"/a:1", "/a:1", "", ""},
		{"/12:30", "/12:30", "", ""}, {"/a:", "/a:", "", ""},
		{"/a+b", "/a+b", "", ""},     {"/averylongpath1", "/averylongpath2", "", NULL},
	};
	check_matches(PATTERN_EXACT, cases, COUNT(cases));
}

static void a_splat_takes_anything_or_nothing(void **state) {
	(void)state;
	static const struct match_case cases[] = {
		{"/*", "/", "splat", "splat="},
		{"/*", "/a/b/", "splat", "splat=a/b/"},
		{"/static/*", "/static/image.jpg", "splat", "splat=image.jpg"},
		{"/static/*", "/static", "", NULL},
		{"/static/*", "/other/x", "", NULL},
		{"/*.jpg", "/a/b.jpg", "splat", "splat=a/b"},
		{"/*.jpg", "/.jpg", "splat", "splat="},
		{"/*.jpg", "/a.png", "", NULL},
		{"/a*a", "/a", "", NULL},
		{"/a*a", "/aa", "splat", "splat="},
		{"/a*a", "/abca", "splat", "splat=bc"},
		{"/ab*bc", "/abc", "", NULL},
		{"/*/edit", "/x/y/edit", "splat", "splat=x/y"},
		{"/*/edit", "/edit", "", NULL},
	};
	check_matches(PATTERN_EXACT, cases, COUNT(cases));
}

static void a_placeholder_takes_one_or_more_characters_of_a_segment(void **state) {
	(void)state;
	static const struct match_case cases[] = {
		{"/movies/:title", "/movies/x", "title", "title=x"},
		{"/movies/:title", "/movies/", "", NULL},
		{"/movies/:title", "/movies/x/y", "", NULL},
		{"/movies/:title", "/movies/x/", "", NULL},
		{"/templates/:name/tickets", "/templates/blue/tickets", "name", "name=blue"},
		{"/:y/:m/:d", "/2024/02/29", "y, m, d", "y=2024 m=02 d=29"},
		{"/:a-:b", "/x-y", "a, b", "a=x b=y"},
		{"/:a-:b", "/x-y-z", "a, b", "a=x b=y-z"},
		{"/:a-:b", "/-y", "", NULL},
		{"/:a-:b", "/--y", "a, b", "a=- b=y"},
		{"/:a-:b", "/x-", "", NULL},
		{"/:a-:b", "/x/-y", "", NULL},
		{"/x-:a.b*", "/x-/.b", "", NULL},
		{"/*c:a/d", "/c//d", "", NULL},
		{"/:n_1.:e2", "/x.y", "n_1, e2", "n_1=x e2=y"},
	};
	check_matches(PATTERN_EXACT, cases, COUNT(cases));
}

static void where_parts_can_meet_in_several_places_a_match_is_found(void **state) {
	(void)state;
	static const struct match_case cases[] = {
		{"/:f.html", "/a.html.html", "f", "f=a.html"},
		{"/:a-b", "/x-b-b", "a", "a=x-b"},
		{"/:a-b/c", "/x-b-b/c", "a", "a=x-b"},
		{"/:a-:b-c", "/1-2-c-c", "a, b", "a=1 b=2-c"},
		{"/:a-b/:c", "/x-b-b/y", "a, c", "a=x-b c=y"},
		{"/:a/b*", "/x/bcd", "a, splat", "a=x splat=cd"},
		{"/:a-*-:b", "/1-2-3-4", "a, splat, b", "a=1 splat=2-3 b=4"},
		{"/:a-*", "/1-2-3", "a, splat", "a=1 splat=2-3"},
		{"/:id/*", "/7/x/y", "id, splat", "id=7 splat=x/y"},
		{"/*/:name", "/a/b/c", "splat, name", "splat=a/b name=c"},
		{"/*/:name", "/a", "", NULL},
		{"/*x:a-:b", "/QxA-B-C", "splat, a, b", "splat=Q a=A-B b=C"},
		{"/*/:a/:b.txt", "/1/2/3/4.txt", "splat, a, b", "splat=1/2 a=3 b=4"},
		{"/:a_.aab*", "/a.a.aabb", "a_, splat", "a_=a.a splat=b"},
		{"/:x-abac-:y", "/1-ababac-abac-z", "x, y", "x=1-ababac y=z"},
		{"/a:n/b*c:m/d", "/a1/bXc2/c3/d", "n, splat, m", "n=1 splat=Xc2/ m=3"},
	};
	check_matches(PATTERN_EXACT, cases, COUNT(cases));
}

static void a_slash_at_the_end_makes_no_difference_to_a_loose_pattern(void **state) {
	(void)state;
	static const struct match_case cases[] = {
		{"/a", "/a/", "", ""},
		{"/a/", "/a", "", ""},
		{"/a", "/a", "", ""},
		{"/a/", "/a/", "", ""},
		{"/a", "/ab", "", NULL},
		{"/", "/", "", ""},
		{"/", "/a", "", NULL},
		{"/long/enough/path", "/long/enough/path/", "", ""},
		{"/blog/*", "/blog", "splat", "splat="},
		{"/blog/*", "/blog/", "splat", "splat="},
		{"/blog/*", "/blog/x", "splat", "splat=x"},
		{"/blog/*", "/blog/x/", "splat", "splat=x/"},
		{"/blog/*", "/blogx", "", NULL},
		{"/blog*", "/blog", "splat", "splat="},
		{"/blog*", "/blog/", "splat", "splat=/"},
		{"/*", "/", "splat", "splat="},
		{"/*", "/x", "splat", "splat=x"},
		{"/:id", "/7/", "id", "id=7"},
		{"/:id/", "/7", "id", "id=7"},
		{"/:id/*", "/7", "id, splat", "id=7 splat="},
		{"/:id/*", "/", "", NULL},
		{"/*/edit", "/x/edit/", "splat", "splat=x"},
		{"/*.html", "/x.html/", "splat", "splat=x"},
		{"/*/:b", "/x/y/", "splat, b", "splat=x b=y"},
	};
	check_matches(PATTERN_LOOSE, cases, COUNT(cases));
}

static void percent_encoding_in_a_pattern_is_the_octet_itself(void **state) {
	(void)state;
	static const struct match_case cases[] = {
		{"/authors/c%C3%A9line", "/authors/c\xC3\xA9line", "", ""},
		{"/a%20b", "/a b", "", ""},
		{"/%2A", "/*", "", ""},
		{"/%2a", "/x", "", NULL},
		{"/%3Aname", "/:name", "", ""},
		{"/%25", "/%", "", ""},
		{"/%3Fx%23", "/?x#", "", ""},
		{"/\xC3\xA9", "/\xC3\xA9", "", ""},
	};
	check_matches(PATTERN_EXACT, cases, COUNT(cases));
}

static void the_host_of_a_pattern_has_to_match_without_scheme_port_and_case(void **state) {
	(void)state;
	static const struct {
		const char *pattern, *host, *path, *names, *wanted;
	} cases[] = {
		{"https://example.com/path", "example.com:1234", "/path", "", ""},
		{"http://Example.COM:80/path", "eXample.com.", "/path", "", ""},
		{"HTTPS://example.com./path", "example.com", "/path", "", ""},
		{"https://example.com/path", "www.example.com", "/path", "", NULL},
		{"https://example.com/path", "example.com", "/other", "", NULL},
		{"https://example.com/path", NULL, "/path", "", NULL},
		{"https://example.com/path", "a/b", "/path", "", NULL},
		{"https://example.com", "example.com", "/", "", ""},
		{"https://:project.pages.dev/*", "shop.pages.dev", "/x", "project, splat", "project=shop splat=x"},
		{"https://:project.pages.dev/*", "Shop.Pages.dev:443", "/x", "project", "project=shop"},
		{"https://:project.pages.dev/*", "a.b.pages.dev", "/x", "", NULL},
		{"https://:project.pages.dev/*", "pages.dev", "/x", "", NULL},
		{"https://:a.:b/:c", "x.y", "/z", "a, b, c", "a=x b=y c=z"},
		{"https://pr-:n.x/*", "pr-7.x", "/", "n", "n=7"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *got = match(cases[i].pattern, PATTERN_EXACT, cases[i].host, cases[i].path, cases[i].names);
		if (!got != !cases[i].wanted || (got && strcmp(got, cases[i].wanted) != 0))
			fail_msg("'%s' on '%s' '%s': %s", cases[i].pattern, cases[i].host, cases[i].path, got ? got : "none");
	}
}

static void a_pattern_that_is_none_is_refused(void **state) {
	(void)state;
	static const char *const cases[] = {
		"",
		"a",
		"*",
		"?",
		"ftp://a/b",
		"/:a:b",
		"/:a*",
		"/*:a",
		"/**",
		"/*/x/*",
		"/:a/:a",
		"/:splat/*",
		"/%",
		"/%4",
		"/%zz",
		"/%2f",
		"/%00",
		"/a b",
		"/a\tb",
		"/a\x7F",
		"/a?b",
		"/a#b",
		"//",
		"/a//b",
		"http:///a",
		"http://*/a",
		"http://a*/b",
		"http://a,/",
		"http://:/b",
		"http://:a:b/",
		"http://a@b/",
		"http:/a",
		"https://[::1]/",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct pattern pattern;
		if (!pattern_compile(&pattern, slice_of(cases[i]), PATTERN_EXACT)) fail_msg("'%s' is accepted", cases[i]);
	}
	struct pattern pattern;
	assert_non_null(pattern_compile(&pattern, (struct slice){.at = "/a\0b", .length = 4}, PATTERN_EXACT));
}

static void a_pattern_has_a_greatest_length_and_number_of_placeholders(void **state) {
	(void)state;
	char text[PATTERN_MAX + 2];
	struct pattern pattern;
	memset(text, 'a', sizeof text);
	text[0] = '/';
	assert_non_null(pattern_compile(&pattern, (struct slice){.at = text, .length = PATTERN_MAX + 1}, PATTERN_LOOSE));
	assert_null(pattern_compile(&pattern, (struct slice){.at = text, .length = PATTERN_MAX}, PATTERN_LOOSE));
	pattern_free(&pattern);
	size_t n = 0;
	for (int i = 0; i <= PATTERN_NAMES_MAX; i++) {
		if (i == PATTERN_NAMES_MAX) {
			memcpy(text + n, "/*", 2); /* it is not a name */
			assert_null(pattern_compile(&pattern, (struct slice){.at = text, .length = n + 2}, PATTERN_LOOSE));
			pattern_free(&pattern);
		}
		n += (size_t)sprintf(text + n, "/:a%d", i);
	}
	assert_non_null(pattern_compile(&pattern, (struct slice){.at = text, .length = n}, PATTERN_EXACT));
}

/* With paths and patterns of one character, matching would take forever if several lengths were tried for placeholders.
 */
static void a_match_costs_at_most_the_product_of_both_lengths(void **state) {
	(void)state;
	static char path[8 * 1024];
	static const char *const shapes[] = {"/:aX%:bX%:cX%:d", "/:aX%:bX%:cX%y", "/*y:aX%:bX", "/:aX%*X%y", "/*yX:aX:b"};
	memset(path, '-', sizeof path);
	path[0] = '/';
	for (size_t i = 0; i < COUNT(shapes); i++) {
		char text[PATTERN_MAX + 1];
		size_t n = 0, runs = 0;
		for (const char *c = shapes[i]; *c; c++) runs += *c == 'X';
		for (const char *c = shapes[i]; *c; c++) {
			if (*c == 'X') memset(text + n, '-', 900 / runs), n += 900 / runs;
			else if (*c == '%') text[n++] = i % 2 ? '-' : '.';
			else text[n++] = *c;
		}
		struct pattern pattern;
		struct pattern_subject subject;
		struct pattern_captures captures;
		if (pattern_compile(&pattern, (struct slice){.at = text, .length = n}, PATTERN_EXACT)) fail();
		for (int round = 0; round < ROUNDS; round++) {
			pattern_subject(&subject, (struct slice){0}, (struct slice){.at = path, .length = sizeof path},
							PATTERN_EXACT);
			assert_false(pattern_match(&pattern, &subject, &captures));
		}
		pattern_free(&pattern);
	}
}

/* Returns the work of a match of a pattern, which has a run of '-' for each '^', with a path of '-'. */
static size_t work_of(const char *shape, size_t run, size_t length) {
	static char path[PATTERN_PATH_MAX];
	char text[PATTERN_MAX + 1];
	size_t n = 0;
	struct pattern pattern;
	struct pattern_subject subject;
	struct pattern_captures captures;
	for (const char *c = shape; *c; n += *c++ == '^' ? run : 1)
		memset(text + n, *c == '^' ? '-' : *c, *c == '^' ? run : 1);
	memset(path, '-', length);
	path[0] = '/';
	if (pattern_compile(&pattern, (struct slice){.at = text, .length = n}, PATTERN_EXACT)) fail();
	pattern_subject(&subject, (struct slice){0}, (struct slice){.at = path, .length = length}, PATTERN_EXACT);
	(void)pattern_match(&pattern, &subject, &captures);
	pattern_free(&pattern);
	return subject.work;
}

static void a_match_counts_the_octets_that_it_compares(void **state) {
	(void)state;
	enum { RUN = 900, PATH = 8000 };
	/* in each place but at the end, the whole run is compared */
	assert_true(work_of("/:x^c/:y", RUN, PATH) >= (size_t)(PATH - RUN - 3) * RUN);
	assert_true(work_of("/*^c-:x", RUN, PATH) >= (size_t)(PATH - RUN - 4) * RUN);
	assert_true(work_of("/:x^c*", RUN, PATH) >= (size_t)(PATH - RUN - 3) * RUN);
	/* what is found soon costs no more than before, and so does what there is one place for */
	assert_true(work_of("/:x^", 1, PATH) <= PATH + PATTERN_PLACE_WORK + 1);
	assert_true(work_of("/:x/^/:y", RUN, PATH) <= PATH);
	assert_true(work_of("/:a/*", 1, PATH) <= PATH);
}

/* --- _headers --- */

static struct header_rules *headers_of(const char *text) {
	struct told told = nothing_told;
	struct header_rules *rules = header_rules_parse(slice_of(text), &told.report);
	if (!rules || told.count) fail_msg("line %u: %s", told.first.line, told.first.text);
	return rules;
}

/* Returns a set as "Name: value" and "! Name", separated by '|'. */
static const char *set_text(const struct header_set *set) {
	static char out[4096];
	size_t n = 0;
	out[0] = '\0';
	for (unsigned i = 0; set && i < set->count; i++) {
		const struct header_item *item = &set->item[i];
		n += (size_t)snprintf(out + n, sizeof out - n, item->detach ? "%s! %.*s" : "%s%.*s: %.*s", n ? "|" : "",
							  (int)item->name.length, item->name.at, (int)item->value.length, item->value.at);
	}
	return out;
}

static struct header_filled filled; /* by the last fields_for() */

static const struct header_set *fields_for(struct header_rules *rules, struct slice host, struct slice path) {
	return header_rules_match(rules, host, path, &filled);
}

static void check_headers(struct header_rules *rules, const char *host, const char *path, const char *wanted) {
	const struct header_set *set = fields_for(rules, host ? slice_of(host) : (struct slice){0}, slice_of(path));
	if (strcmp(set_text(set), wanted) != 0) fail_msg("%s gets '%s', not '%s'", path, set_text(set), wanted);
	assert_true(!set == !*wanted);
}

static void all_patterns_that_match_give_their_fields_in_order(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("# This is a comment\n"
											"/secure/page\n"
											"  X-Frame-Options: DENY\n"
											"  X-Content-Type-Options: nosniff\n"
											"  Referrer-Policy: no-referrer\n"
											"\n"
											"/static/*\n"
											"  Access-Control-Allow-Origin: *\n"
											"  X-Robots-Tag: nosnippet\n"
											"\n"
											"https://myproject.pages.dev/*\n"
											"  X-Robots-Tag: noindex\n");
	check_headers(rules, "custom.domain", "/secure/page",
				  "X-Frame-Options: DENY|X-Content-Type-Options: nosniff|Referrer-Policy: no-referrer");
	check_headers(rules, "custom.domain", "/static/image.jpg",
				  "Access-Control-Allow-Origin: *|X-Robots-Tag: nosnippet");
	check_headers(rules, "myproject.pages.dev", "/home", "X-Robots-Tag: noindex");
	check_headers(rules, "myproject.pages.dev:8443", "/secure/page",
				  "X-Frame-Options: DENY|X-Content-Type-Options: nosniff|Referrer-Policy: no-referrer|"
				  "X-Robots-Tag: noindex");
	check_headers(rules, "myproject.pages.dev", "/static/styles.css",
				  "Access-Control-Allow-Origin: *|X-Robots-Tag: nosnippet, noindex");
	check_headers(rules, NULL, "/other", "");
	header_rules_free(rules);
}

static void a_name_said_twice_is_joined_but_for_cookies(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("/*\n"
											"  vary: Origin\n"
											"  Vary : Cookie\n"
											"  Set-Cookie: a=1\n"
											"  X-One: 1\n"
											"  VARY: Accept\n"
											"  set-cookie: b=2\n"
											"/x\n"
											"  vary: DNT\n");
	check_headers(rules, NULL, "/", "vary: Origin, Cookie, Accept|Set-Cookie: a=1|X-One: 1|set-cookie: b=2");
	check_headers(rules, NULL, "/x", "vary: Origin, Cookie, Accept, DNT|Set-Cookie: a=1|X-One: 1|set-cookie: b=2");
	header_rules_free(rules);
}

static void a_field_that_comes_once_is_that_of_the_last_pattern(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("/*\n"
											"  Cache-Control: max-age=0\n"
											"  cache-control: must-revalidate\n"
											"  X-Frame-Options: DENY\n"
											"  X-One: 1\n"
											"/x*\n"
											"  CACHE-CONTROL: public\n"
											"  Cache-Control: max-age=60\n"
											"/xy\n"
											"  x-frame-options: SAMEORIGIN\n"
											"  X-One: 2\n"
											"/xyz\n"
											"  ! cache-control\n");
	check_headers(rules, NULL, "/", "Cache-Control: max-age=0, must-revalidate|X-Frame-Options: DENY|X-One: 1");
	check_headers(rules, NULL, "/x", "X-Frame-Options: DENY|X-One: 1|CACHE-CONTROL: public, max-age=60");
	check_headers(rules, NULL, "/xy", "X-One: 1, 2|CACHE-CONTROL: public, max-age=60|x-frame-options: SAMEORIGIN");
	check_headers(rules, NULL, "/xyz", "X-Frame-Options: DENY|X-One: 1|! cache-control");
	header_rules_free(rules);
}

static unsigned noted;
static void count_note(struct rules_report *report, const struct rules_error *error) {
	(void)report;
	noted = noted * 100 + error->line;
}

static void it_is_said_which_field_replaces_another(void **state) {
	(void)state;
	static const struct {
		const char *text;
		unsigned told, noted; /* lines */
	} cases[] = {
		{"/*\n  Pragma: a\n/b/*\n  Pragma: c\n", 0, 4},
		{"/b/*\n  Pragma: a\n/*\n  Pragma: c\n", 4, 0},
		{"/b\n  Pragma: a\n/b\n  Pragma: c\n", 4, 0},
		{"/b/*\n  Pragma: a\n/c/*\n  Pragma: c\n", 0, 0},
		{"/*\n  Vary: a\n/b/*\n  Vary: c\n", 0, 0},
		{"/*\n  Pragma: a\n  Pragma: b\n", 0, 0},
		{"/*\n  Pragma: a\n/b/*\n  ! Pragma\n", 0, 4},
		{"https://a.test/*\n  Pragma: a\n/b\n  Pragma: c\n", 0, 0},
		{"https://a.test/*\n  Pragma: a\nhttps://a.test/b\n  Pragma: c\n", 0, 4},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct told told = nothing_told;
		told.report.note = count_note;
		noted = 0;
		header_rules_free(header_rules_parse(slice_of(cases[i].text), &told.report));
		if (told.count != (cases[i].told > 0) || told.first.line != cases[i].told || noted != cases[i].noted)
			fail_msg("case %zu: told %u, line %u; noted %u", i, told.count, told.first.line, noted);
	}
}

static void a_detached_field_is_gone_until_it_is_said_again(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("/*\n"
											"  Content-Security-Policy: default-src 'self';\n"
											"  Set-Cookie: a=1\n"
											"/*.jpg\n"
											"  ! content-security-policy\n"
											"  ! Set-Cookie\n"
											"  ! Content-Type\n"
											"/new.jpg\n"
											"  Content-Security-Policy: default-src 'none'\n"
											"  !Vary\n");
	check_headers(rules, NULL, "/", "Content-Security-Policy: default-src 'self';|Set-Cookie: a=1");
	check_headers(rules, NULL, "/a.jpg", "! content-security-policy|! Set-Cookie|! Content-Type");
	check_headers(rules, NULL, "/new.jpg",
				  "! Set-Cookie|! Content-Type|Content-Security-Policy: default-src 'none'|! Vary");
	header_rules_free(rules);
}

/* Names of RFCs, Fetch, HTML and others, of which no program makes a list. */
static void a_later_pattern_replaces_fields_that_a_response_has_once(void **state) {
	(void)state;
	static const char *const once[] = {"Access-Control-Allow-Origin",
									   "Cache-Control",
									   "Content-Type",
									   "Cross-Origin-Embedder-Policy",
									   "Cross-Origin-Opener-Policy",
									   "Cross-Origin-Resource-Policy",
									   "Expires",
									   "Origin-Agent-Cluster",
									   "Referrer-Policy",
									   "Strict-Transport-Security",
									   "X-Content-Type-Options",
									   "X-DNS-Prefetch-Control",
									   "X-Frame-Options",
									   "X-XSS-Protection"};
	for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
		char text[256], wanted[128];
		snprintf(text, sizeof text, "/*\n  %s: first\n/x\n  %s: second\n", once[i], once[i]);
		snprintf(wanted, sizeof wanted, "%s: second", once[i]);
		struct header_rules *rules = headers_of(text);
		check_headers(rules, NULL, "/x", wanted);
		header_rules_free(rules);
	}
}

static void the_documents_other_examples_of_headers_work(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("# a path:\n"
											"/templates/index.html\n"
											"  # headers for that path:\n"
											"  X-Frame-Options: DENY\n"
											"/templates/:placeholder/tickets\n"
											"\tX-Frame-Options: SAMEORIGIN\n"
											"/app/*\n"
											"  Permissions-Policy: document-domain=()\n"
											"  Content-Security-Policy: script-src 'self'; frame-ancestors 'none';\n"
											"https://:project.pages.dev/*\n"
											"  X-Robots-Tag: noindex\n"
											"/about/faq/*\n"
											"  Link: </about/faqs>; rel=\"canonical\"\n");
	check_headers(rules, NULL, "/templates/index.html", "X-Frame-Options: DENY");
	check_headers(rules, NULL, "/templates/red/tickets", "X-Frame-Options: SAMEORIGIN");
	check_headers(rules, NULL, "/app/",
				  "Permissions-Policy: document-domain=()|"
				  "Content-Security-Policy: script-src 'self'; frame-ancestors 'none';");
	check_headers(rules, "shop.pages.dev", "/", "X-Robots-Tag: noindex");
	check_headers(rules, NULL, "/about/faq/1", "Link: </about/faqs>; rel=\"canonical\"");
	header_rules_free(rules);
}

static void line_ends_a_byte_order_mark_and_no_line_at_all_are_understood(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("\xEF\xBB\xBF/a\r\n  X-A: 1 \r\n\r\n \t\r\n/b\r\n\tX-B:2");
	check_headers(rules, NULL, "/a", "X-A: 1");
	check_headers(rules, NULL, "/b", "X-B: 2");
	header_rules_free(rules);
	static const char *const empty[] = {"", "\xEF\xBB\xBF", "\n\n", "# nothing", "/a\n/b\n"};
	for (size_t i = 0; i < COUNT(empty); i++) {
		rules = headers_of(empty[i]);
		check_headers(rules, NULL, "/a", "");
		header_rules_free(rules);
	}
}

struct error_case {
	const char *text;
	unsigned line;
	const char *why; /* part of the message */
};

static void a_mistake_in_headers_is_told_with_its_line(void **state) {
	(void)state;
	static const struct error_case cases[] = {
		{"  X-A: 1\n", 1, "no pattern above"},
		{"# x\n\nX-A: 1\n", 3, "no pattern above"},
		{"/a\n  X-A\n", 2, "no field: there is no ':'"},
		{"/a\n  X-A deny\n  X-B: 1\n", 2, "no field: there is no ':'"},
		{"/a\n  X A: 1\n", 2, "'X A' is not a field name"},
		{"/a\n  : 1\n", 2, "'' is not a field name"},
		{"/a\n  !\n", 2, "'' is not a field name"},
		{"/a\n  ! X: y\n", 2, "'X: y' is not a field name"},
		{"/a\n  X-A:\n", 2, "X-A has no value"},
		{"/a\n  X-A: \t \r\n", 2, "X-A has no value"},
		{"/a\n  X-A: 1\n  X-B: a\x01\n", 3, "X-B has a control character"},
		{"/a\n  X-B: a\rb\n", 2, "X-B has a control character"},
		{"/a\n  X-B: a\x7F\n", 2, "control character"},
		{"/a\n  X\x1B[2J: a\n", 2, "'X?[2J' is not a field name"},
		{"/a\n  ETag: \"x\"\n", 2, "only the server can set ETag"},
		{"/a\n  ! date\n", 2, "only the server can set date"},
		{"/a\n  proxy-authenticate: Basic\n", 2, "only the server can set proxy-authenticate"},
		{"/a\n  Content-Length: 1\n", 2, "only the server"},
		{"/a\n  Transfer-Encoding: x\n", 2, "only the server"},
		{"/a\n  Basic-auth: me:secret\n", 2, "Basic-Auth is not supported"},
		{"/:t\n  Content-Type: text/:t\n", 2, "Content-Type may not contain :t"},
		{"/*\n  x-content-type-options: :splat\n", 2, "may not contain :splat"},
		{"/a\n  X-A: 1\n/b/**\n", 3, "second '*'"},
		{"/a\n  Content-Encoding: Identity\n", 2, "without a coding"},
		{"/:t\n  Content-Encoding: :t\n", 2, "may not contain :t"},
		{"/a\n  ! ETag\n", 2, "only the server"},
		{"/a\n  X-A: 1\nexample.com:8080/b\n", 3, "neither a pattern"},
		{"/a\n  X-A: 1\nhttps:/e.com/b\n", 3, "neither a pattern"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct told told = nothing_told;
		header_rules_free(header_rules_parse(slice_of(cases[i].text), &told.report));
		if (told.count != 1 || told.first.line != cases[i].line || !strstr(told.first.text, cases[i].why))
			fail_msg("case %zu: told %u, line %u, '%s'", i, told.count, told.first.line, told.first.text);
	}
	struct told ignored = nothing_told;
	header_rules_free(header_rules_parse(slice_of("b.html\n  X-A: 1\n*.css\n  X-B: 1\n"), &ignored.report));
	assert_int_equal(ignored.count, 4);
	assert_non_null(strstr(ignored.last.text, "it is ignored with the pattern of line 3"));
	struct told field = nothing_told, pattern = nothing_told;
	header_rules_free(header_rules_parse((struct slice){.at = "/a\n X: a\0b\n", .length = 11}, &field.report));
	assert_int_equal(field.first.line, 2);
	header_rules_free(header_rules_parse((struct slice){.at = "/a\0b\n", .length = 5}, &pattern.report));
	assert_int_equal(pattern.first.line, 1);
}

static void of_headers_what_is_wrong_is_left_out_and_the_rest_stays(void **state) {
	(void)state;
	static const char text[] =
		"/a/**  \n  X-A: 1\n  X-B: 2\n/* # all\n  Content-Length: 3\n  X-C: 3\nX-D: 4\n! Server\n  X-E\n"
		" /b#c\n  X-F: 6\n";
	struct told told = nothing_told;
	struct header_rules *rules = header_rules_parse(slice_of(text), &told.report);
	assert_non_null(rules);
	check_headers(rules, NULL, "/a/b", "X-C: 3|X-D: 4");
	assert_int_equal(told.count, 8); /* for each of its lines; also for the fields below a wrong pattern */
	assert_int_equal(told.first.line, 1);
	assert_memory_equal(told.first.whole.at, "/a/**", told.first.whole.length);
	header_rules_free(rules);
	struct told dotted = nothing_told; /* a name may contain '.' (RFC 9110, section 5.6.2) */
	rules = header_rules_parse(SLICE("/a\n  X-A.B: 1\n  X-C: 2\n"), &dotted.report);
	check_headers(rules, NULL, "/a", "X-A.B: 1|X-C: 2");
	assert_int_equal(dotted.count, 0);
	header_rules_free(rules);
}

static void the_same_rules_give_the_same_set_and_ids_never_come_again(void **state) {
	(void)state;
	static const char text[] = "/a*\n X-A: 1\n/*b\n X-B: 1\n";
	struct header_rules *one = headers_of(text), *two = headers_of(text);
	const struct slice none = {0};
	const struct header_set *a = fields_for(one, none, SLICE("/ac")), *both = fields_for(one, none, SLICE("/ab"));
	assert_ptr_equal(a, fields_for(one, none, SLICE("/a/other")));
	assert_ptr_equal(both, fields_for(one, none, SLICE("/ab")));
	assert_ptr_not_equal(a, both);
	assert_int_equal(both->octets, 2 * sizeof "X-A: 1\r");
	const struct header_set *other = fields_for(two, none, SLICE("/ac"));
	assert_true(a->id && both->id && other->id);
	assert_true(a->id != both->id && a->id != other->id && both->id != other->id);
	header_rules_free(one);
	header_rules_free(two);
}

static void more_sets_than_are_kept_have_the_same_ids_each_time(void **state) {
	(void)state;
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCD";
	enum { STARTS = sizeof letters - 1 };
	static char text[STARTS * 64];
	size_t n = 0;
	for (int i = 0; i < STARTS; i++)
		n += (size_t)sprintf(text + n, "/%c*\n X-Name: %d\n/*%c\n X-Name: %d\n", letters[i], i, letters[i], STARTS + i);
	struct header_rules *rules = headers_of(text);
	static uint64_t id[STARTS * STARTS];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < STARTS * STARTS; i++) {
			char path[] = {'/', letters[i / STARTS], letters[i % STARTS], '\0'}, wanted[32];
			int a = i / STARTS, b = STARTS + i % STARTS;
			const struct header_set *set = fields_for(rules, (struct slice){0}, slice_of(path));
			/* in the order of the file */
			sprintf(wanted, "X-Name: %d, %d", a <= b - STARTS ? a : b, a <= b - STARTS ? b : a);
			assert_string_equal(set_text(set), wanted);
			assert_true(set->id && (round == 0 || set->id == id[i]));
			id[i] = set->id;
		}
	}
	for (int i = 0; i < STARTS * STARTS; i++)
		for (int j = 0; j < i; j++) assert_true(id[i] != id[j]);
	header_rules_free(rules);
}

/* --- values with placeholders --- */

/* Returns the lines for that path, with '|' instead of CRLF. */
static const char *filled_text(struct header_rules *rules, const char *host, const char *path) {
	static char out[HEADER_OCTETS_MAX + 1];
	(void)fields_for(rules, host ? slice_of(host) : (struct slice){0}, slice_of(path));
	struct slice lines = filled.lines;
	size_t n = 0;
	assert_true(lines.length <= HEADER_OCTETS_MAX);
	for (size_t i = 0; i < lines.length; i++)
		if (lines.at[i] != '\r') out[n++] = lines.at[i] == '\n' ? '|' : lines.at[i];
	out[n] = '\0';
	return out;
}

static void check_filled(struct header_rules *rules, const char *host, const char *path, const char *wanted) {
	const char *got = filled_text(rules, host, path);
	if (strcmp(got, wanted) != 0) fail_msg("%s gets '%s', not '%s'", path, got, wanted);
}

static void values_are_filled_in_with_what_the_pattern_has_matched(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("/movies/:title\n"
											"  x-movie-name: You are watching \":title\"\n"
											"/dl/:a-:b/*\n"
											"  X-All: :b/:a/:splat::a\n"
											"  X-Static: 1\n"
											"/plain\n"
											"  X-Plain: :title :splat\n"
											"https://:project.pages.dev/p/*\n"
											"  X-Project: :project, :splat!\n"
											"/names/:x\n"
											"  X-Name: :xy :x: :x_ ::x :X http://:x:80/\n");
	check_filled(rules, NULL, "/movies/jaws", "x-movie-name: You are watching \"jaws\"|");
	check_filled(rules, NULL, "/dl/1-2/3/4", "X-All: 2/1/3/4:1|");
	check_headers(rules, NULL, "/dl/1-2/3/4", "! X-All|X-Static: 1");
	check_filled(rules, NULL, "/plain", "");
	check_headers(rules, NULL, "/plain", "X-Plain: :title :splat");
	check_filled(rules, "Shop.Pages.Dev:8443", "/p/", "X-Project: shop, !|");
	check_filled(rules, "elsewhere.dev", "/p/", "");
	check_filled(rules, NULL, "/names/v", "X-Name: :xy v: :x_ :v :X http://v:80/|");
	check_filled(rules, NULL, "/nothing", "");
	header_rules_free(rules);
}

static void what_is_filled_in_cannot_leave_its_place(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("/:n/*\n  X-A: :n\n  Link: </:splat>; rel=canonical\n");
	check_filled(rules, NULL, "/a\r\nSet-Cookie: b=c/", "X-A: a%0D%0ASet-Cookie%3A%20b%3Dc|Link: </>; rel=canonical|");
	check_filled(rules, NULL, "/\xC3\xA9%\t\x7F/x>; rel=\"y\", z/w",
				 "X-A: %C3%A9%25%09%7F|Link: </x%3E%3B%20rel%3D%22y%22%2C%20z/w>; rel=canonical|");
	check_filled(rules, NULL, "/aZ09-._~/a/b", "X-A: aZ09-._~|Link: </a/b>; rel=canonical|");
	header_rules_free(rules);
}

static void filled_in_values_are_joined_and_detached_as_others_are(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("/*\n"
											"  X-A: all\n"
											"  X-B: b\n"
											"  X-C: :splat\n"
											"  Set-Cookie: s=1\n"
											"/x/:n\n"
											"  X-A: :n\n"
											"  ! X-C\n"
											"  Set-Cookie: n=:n\n"
											"  Set-Cookie: t=1\n"
											"/*/7\n"
											"  x-a: last :splat\n"
											"  X-A: end\n"
											"/x/again\n"
											"  X-C: again\n");
	check_filled(rules, NULL, "/y", "X-C: y|");
	check_headers(rules, NULL, "/y", "X-A: all|X-B: b|! X-C|Set-Cookie: s=1");
	check_filled(rules, NULL, "/x/7", "X-A: all, 7, last x, end|Set-Cookie: n=7|");
	check_headers(rules, NULL, "/x/7", "! X-A|X-B: b|Set-Cookie: s=1|! X-C|! Set-Cookie|Set-Cookie: t=1");
	check_filled(rules, NULL, "/x/again", "X-A: all, again|Set-Cookie: n=again|");
	check_headers(rules, NULL, "/x/again", "! X-A|X-B: b|Set-Cookie: s=1|! Set-Cookie|Set-Cookie: t=1|X-C: again");
	header_rules_free(rules);
}

static void no_number_of_paths_makes_more_than_one_set(void **state) {
	(void)state;
	struct header_rules *rules = headers_of("/*\n  X-A: :splat\n  X-B: 1\n");
	const struct header_set *first = fields_for(rules, (struct slice){0}, SLICE("/"));
	for (int i = 0; i < 4 * HEADER_SETS_MAX; i++) {
		char path[16], wanted[32];
		sprintf(path, "/%d", i);
		sprintf(wanted, "X-A: %d|", i);
		assert_ptr_equal(fields_for(rules, (struct slice){0}, slice_of(path)), first);
		check_filled(rules, NULL, path, wanted);
	}
	assert_int_equal(first->octets, sizeof "X-B: 1\r");
	header_rules_free(rules);
}

static void more_sets_than_are_kept_are_filled_in(void **state) {
	(void)state;
	enum { STARTS = 40 };
	static char text[STARTS * 64];
	size_t n = 0;
	for (int i = 0; i < STARTS; i++)
		n += (size_t)sprintf(text + n, "/%d-*\n X-Name: %d :splat\n/*-%d\n X-Name: :splat %d\n", i, i, i, i);
	struct header_rules *rules = headers_of(text);
	for (int i = 0; i < STARTS * STARTS; i++) {
		char path[32], wanted[64];
		int a = i / STARTS, b = i % STARTS;
		sprintf(path, "/%d-y-%d", a, b);
		sprintf(wanted, a <= b ? "X-Name: %d y-%d, %d-y %d|" : "X-Name: %d-y %d, %d y-%d|", a, b, a, b);
		check_filled(rules, NULL, path, wanted);
	}
	header_rules_free(rules);
}

static void what_is_filled_in_has_a_greatest_length(void **state) {
	(void)state;
	static char path[HEADER_OCTETS_MAX + 2];
	struct header_rules *rules = headers_of("/*\n  A: :splat\n");
	memset(path, 'a', sizeof path - 1);
	path[0] = '/';
	for (size_t length = HEADER_OCTETS_MAX - 6; length <= HEADER_OCTETS_MAX + 1; length++) {
		struct slice asked = {.at = path, .length = length};
		assert_non_null(fields_for(rules, (struct slice){0}, asked));
		size_t lines = filled.lines.length, exact = strlen("A: \r\n") + length - 1;
		assert_int_equal(lines, exact <= HEADER_OCTETS_MAX ? exact : HEADER_OCTETS_MAX + 1);
	}
	memset(path + 1, ' ', HEADER_OCTETS_MAX / 2);
	assert_non_null(fields_for(rules, (struct slice){0}, (struct slice){.at = path, .length = 4000}));
	assert_int_equal(filled.lines.length, HEADER_OCTETS_MAX + 1);
	check_filled(rules, NULL, "/b", "A: b|");
	header_rules_free(rules);
}

static char *repeated(const char *line, size_t count, size_t *length) {
	size_t n = strlen(line);
	char *text = malloc(count * n + 1);
	assert_non_null(text);
	for (size_t i = 0; i < count; i++) memcpy(text + i * n, line, n);
	*length = count * n;
	return text;
}

static void too_many_fields_for_one_path_count_as_too_many_bytes(void **state) {
	(void)state;
	static char text[(HEADER_SET_FIELDS_MAX + 1) * 16];
	for (int more = 0; more < 2; more++) {
		size_t n = (size_t)sprintf(text, "/*\n");
		for (int i = 0; i < HEADER_SET_FIELDS_MAX + more; i++) n += (size_t)sprintf(text + n, " ! x%d\n", i);
		struct header_rules *rules = headers_of(text);
		const struct header_set *set = fields_for(rules, SLICE("a"), SLICE("/a"));
		assert_int_equal(set->octets > HEADER_OCTETS_MAX, more);
		header_rules_free(rules);
	}
}

/* They are counted as a response has them, so that what is left fits. */
static void fields_of_one_pattern_that_no_response_can_have_are_left_out(void **state) {
	(void)state;
	static char text[3 * HEADER_OCTETS_MAX];
	static const char *const field[] = {" X-%03d: %08d\n", " A: %03d-%08d\n", " Set-Cookie: %03d=%08d\n"};
	for (size_t i = 0; i < COUNT(field); i++) {
		struct told told = nothing_told;
		size_t n = (size_t)sprintf(text, "/*\n");
		for (int f = 0; n < sizeof text - 64; f++) n += (size_t)sprintf(text + n, field[i], f, f);
		struct header_rules *rules = header_rules_parse((struct slice){.at = text, .length = n}, &told.report);
		assert_non_null(strstr(told.first.text, "exceed 8192 bytes"));
		const struct header_set *set = fields_for(rules, SLICE("a"), SLICE("/a"));
		assert_in_range(set->octets, HEADER_OCTETS_MAX - 32, HEADER_OCTETS_MAX);
		header_rules_free(rules);
	}
}

/* A clock would tell nothing on a busy machine. */
static void a_long_path_is_not_compared_with_all_rules(void **state) {
	(void)state;
	static char text[RULES_MAX * 16], path[PATTERN_PATH_MAX];
	size_t n = 0;
	for (int i = 0; i < RULES_MAX; i++) n += (size_t)sprintf(text + n, "/*b\n x: y\n");
	struct header_rules *rules = headers_of(text);
	memset(path, 'a', sizeof path - 1);
	path[0] = '/';
	assert_true(fields_for(rules, SLICE("a"), slice_of(path))->octets > HEADER_OCTETS_MAX);
	assert_null(fields_for(rules, SLICE("a"), SLICE("/a")));
	header_rules_free(rules);
}

/* A rule that compares as many octets as a thousand others. */
static void a_path_that_is_made_to_be_slow_has_too_many_bytes(void **state) {
	(void)state;
	char text[PATTERN_MAX + 32], path[PATTERN_PATH_MAX], *at = text;
	at += sprintf(at, "/:x");
	memset(at, '-', 900);
	sprintf(at + 900, "c*\n x: :x\n/*\n y: z\n");
	struct header_rules *rules = headers_of(text);
	memset(path, '-', sizeof path);
	path[0] = '/';
	path[sizeof path - 1] = '\0';
	assert_true(fields_for(rules, SLICE("a"), slice_of(path))->octets > HEADER_OCTETS_MAX);
	path[sizeof path - 2] = 'c'; /* it would match */
	assert_true(fields_for(rules, SLICE("a"), slice_of(path))->octets > HEADER_OCTETS_MAX);
	path[950] = '\0';
	assert_true(fields_for(rules, SLICE("a"), slice_of(path))->octets < HEADER_OCTETS_MAX);
	header_rules_free(rules);
}

static void too_many_rules_fields_or_bytes_are_left_out(void **state) {
	(void)state;
	struct told large = nothing_told, rule = nothing_told, field = nothing_told;
	size_t n;
	char *text = repeated("/a\n", 1000 * 1000, &n);
	assert_null(header_rules_parse((struct slice){.at = text, .length = n}, &large.report));
	assert_int_equal(large.first.line, 0);
	assert_non_null(strstr(large.first.text, "too large"));
	header_rules_free(header_rules_parse((struct slice){.at = text, .length = 3 * (RULES_MAX + 1)}, &rule.report));
	assert_int_equal(rule.count, 1);
	assert_int_equal(rule.first.line, RULES_MAX + 1);
	free(text);
	text = repeated(" A:b\n", HEADER_FIELDS_MAX + HEADER_FIELDS_MAX / 1024 + 2, &n);
	for (size_t i = 0; i < n; i += 5 * (1 + 1024)) memcpy(text + i, "/abc\n", 5);
	struct header_rules *rules = header_rules_parse((struct slice){.at = text, .length = n}, &field.report);
	assert_non_null(rules);
	assert_int_equal(field.count, 1);
	assert_int_equal(field.first.line, HEADER_FIELDS_MAX + HEADER_FIELDS_MAX / 1024 + 2);
	const struct header_set *set = fields_for(rules, (struct slice){0}, SLICE("/abc"));
	assert_true(set->octets > HEADER_OCTETS_MAX);
	header_rules_free(rules);
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_matches_itself_in_its_case_and_whole),
		cmocka_unit_test(a_splat_takes_anything_or_nothing),
		cmocka_unit_test(a_placeholder_takes_one_or_more_characters_of_a_segment),
		cmocka_unit_test(where_parts_can_meet_in_several_places_a_match_is_found),
		cmocka_unit_test(a_slash_at_the_end_makes_no_difference_to_a_loose_pattern),
		cmocka_unit_test(percent_encoding_in_a_pattern_is_the_octet_itself),
		cmocka_unit_test(the_host_of_a_pattern_has_to_match_without_scheme_port_and_case),
		cmocka_unit_test(a_pattern_that_is_none_is_refused),
		cmocka_unit_test(a_pattern_has_a_greatest_length_and_number_of_placeholders),
		cmocka_unit_test(a_match_costs_at_most_the_product_of_both_lengths),
		cmocka_unit_test(a_match_counts_the_octets_that_it_compares),
		cmocka_unit_test(all_patterns_that_match_give_their_fields_in_order),
		cmocka_unit_test(a_name_said_twice_is_joined_but_for_cookies),
		cmocka_unit_test(a_field_that_comes_once_is_that_of_the_last_pattern),
		cmocka_unit_test(it_is_said_which_field_replaces_another),
		cmocka_unit_test(a_detached_field_is_gone_until_it_is_said_again),
		cmocka_unit_test(a_later_pattern_replaces_fields_that_a_response_has_once),
		cmocka_unit_test(the_documents_other_examples_of_headers_work),
		cmocka_unit_test(line_ends_a_byte_order_mark_and_no_line_at_all_are_understood),
		cmocka_unit_test(a_mistake_in_headers_is_told_with_its_line),
		cmocka_unit_test(of_headers_what_is_wrong_is_left_out_and_the_rest_stays),
		cmocka_unit_test(the_same_rules_give_the_same_set_and_ids_never_come_again),
		cmocka_unit_test(more_sets_than_are_kept_have_the_same_ids_each_time),
		cmocka_unit_test(values_are_filled_in_with_what_the_pattern_has_matched),
		cmocka_unit_test(what_is_filled_in_cannot_leave_its_place),
		cmocka_unit_test(filled_in_values_are_joined_and_detached_as_others_are),
		cmocka_unit_test(no_number_of_paths_makes_more_than_one_set),
		cmocka_unit_test(more_sets_than_are_kept_are_filled_in),
		cmocka_unit_test(what_is_filled_in_has_a_greatest_length),
		cmocka_unit_test(too_many_fields_for_one_path_count_as_too_many_bytes),
		cmocka_unit_test(fields_of_one_pattern_that_no_response_can_have_are_left_out),
		cmocka_unit_test(a_long_path_is_not_compared_with_all_rules),
		cmocka_unit_test(a_path_that_is_made_to_be_slow_has_too_many_bytes),
		cmocka_unit_test(too_many_rules_fields_or_bytes_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
