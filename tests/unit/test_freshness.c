/* test_freshness.c - what Cache-Control says by itself, and which names carry a hash. */
#include "gatling/freshness.h"
#include "tests/unit/check.h"

static void a_hash_in_a_name_is_told_from_words_dates_and_versions(void **state) {
	(void)state;
	static const struct {
		const char *path;
		bool hashed;
	} cases[] = {
		/* hexadecimal, as webpack and others write it */
		{"app.3f2a9c1b.js", true},
		{"assets/app.3f2a9c1b.js", true},
		{"app-3f2a9c1b.js", true},
		{"app_3f2a9c1b.js", true},
		{"app~3f2a9c1b.js", true},
		{"3f2a9c1b.js", true},
		{"3f2a9c1b.chunk.js", true},
		{"app.3F2A9C1B.css", true},
		{"app.3f2a9c1b.js.map", true},
		{"d41d8cd98f00b204e9800998ecf8427e.png", true},
		{"app.3f2a9c1b.min.js", true},
		{"app.3f2a9c1.js", false},   /* seven digits */
		{"app.3F2a9c1b0.js", false}, /* of both cases */
		{"app.3f2a9g1b.js", false},  /* no digit of it */
		{"app3f2a9c1b.js", false},   /* no part of its own */
		{"3f2a9c1b/app.js", false},  /* of a directory */
		{"3f2a9c1b", false},         /* no suffix behind it */
		{"app.3f2a9c1b", false},     /* it is the suffix */
		{"app.3f2a9c1b.map", false}, /* the same, of a map */
		{"main.deadbeef.css", false},
		{"facade01.png", false},
		{"12345678.png", false},
		{"photo-20240131.jpg", false},
		{"jquery-3.6.0.min.js", false},
		{"report-2024-01-31.pdf", false},
		{"1234567a.pdf", false},
		/* eight characters at the end of the stem, as Vite and esbuild write them */
		{"index-BxK2a9fQ.css", true},
		{"index-B-K2_9fQ.css", true},
		{"index.BxK2a9fQ.js", true},
		{"chunk-7XQ2MZP4.js", true},
		{"index-BxK2a9fQ.js.map", true},
		{"a/b/index-BxK2a9fQ.css", true},
		{"index_BxK2a9fQ.css", false},
		{"indexBxK2a9fQ.css", false},
		{"BxK2a9fQ.css", false},
		{"index-BxK2a9fQ.min.js", false}, /* not at the end */
		{"index-BxKdaafQ.css", false},    /* no digit */
		{"index-bxk2a9fq.css", false},    /* no capital */
		{"my-Release2.zip", false},
		{"Release2.zip", false},
		{"my-VERSION2.zip", false},
		{"photo-IMG_0042.jpg", false},
		{"report-2024-W32.pdf", false},
		{"scan-01-02-A4.pdf", false},
		{"0004f2ab34cd.cfg", false}, /* an address of a network card */
		{"app.0004f2ab34cd.js", true},
		/* oddities */
		{"", false},
		{".", false},
		{".3f2a9c1b", false},
		{".map", false},
		{"a/", false},
		{"app.js.map", false},
		{"app..js", false},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		if (freshness_hashed(slice_of(cases[i].path)) != cases[i].hashed)
			fail_msg("'%s' is %s to carry a hash", cases[i].path, cases[i].hashed ? "not said" : "said");
}

static void pages_are_asked_for_again_and_only_hashes_are_for_ever(void **state) {
	(void)state;
	static const struct {
		const char *path, *type;
		bool guarded;
		const char *value;
	} cases[] = {
		{"index.html", "text/html; charset=utf-8", false, "no-cache"},
		{"index.html", "text/html; charset=utf-8", true, "private, no-cache"},
		{"a.xhtml", "application/xhtml+xml", false, "no-cache"},
		{"page.3f2a9c1b.html", "text/html; charset=utf-8", false, "no-cache"},
		{"app.3f2a9c1b.js", "text/javascript; charset=utf-8", false, "public, max-age=31536000, immutable"},
		{"app.3f2a9c1b.js", "text/javascript; charset=utf-8", true, "private, max-age=31536000, immutable"},
		{"app.js", "text/javascript; charset=utf-8", false, "max-age=600"},
		{"app.js", "text/javascript; charset=utf-8", true, "private, max-age=600"},
		{"notes", "application/octet-stream", false, "max-age=600"},
		{"a.txt", "text/htm", false, "max-age=600"},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		check_slice(freshness(slice_of(cases[i].path), cases[i].type, cases[i].guarded), cases[i].value);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hash_in_a_name_is_told_from_words_dates_and_versions),
		cmocka_unit_test(pages_are_asked_for_again_and_only_hashes_are_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
