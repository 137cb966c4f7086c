/* test_cache_control.c - the default Cache-Control, and which names have a hash. */
#include "gatling/site/cache/cache_control.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <zlib.h>

#include "gatling/media/media_type.h"

static bool is_hashed(const char *path) {
	const char *type = media_type_of(slice_of(path));
	return type && cache_control_is_hashed(slice_of(path), type);
}

static void a_hash_in_a_name_is_told_from_words_dates_and_versions(void **state) {
	(void)state;
	static const struct {
		const char *path;
		bool hashed;
	} cases[] = {
		/* hexadecimal */
		{"app.3f2a9c1b.js", true},
		{"assets/app.3f2a9c1b.js", true},
		{"app-3f2a9c1b.js", true},
		{"logo.3f2a9c1b.svg", true},
		{"3.3f2a9c1b.chunk.js", true},
		{"app.3f2a9c1b.js.map", true},
		{"app.3f2a9c1b.min.js", true},
		{"app.3f2a9c1b.bundle.js", true},
		{"base.27e20196a850.css", true},
		{"cam.001a2b3c4d5e.jpg", false}, /* the address of a camera */
		{"app-d41d8cd98f00b204e9800998ecf8427e.js", true},
		{"main.3f2a9c1b5d6e7f80.js", true},
		{"main-3f2a9c1b5d6e7f80.js", true},
		{"main.3f2a9c1b5d6e7f801234.js", true},
		{"logo.d41d8cd98f00b204e9800998ecf8427e.png", true},
		{"photo_hu_3f2a9c1b5d6e7f80.jpg", true},
		{"logo-3f2a9c1b.png", false}, /* anybody may give a picture this name */
		{"logo-3f2a9c1b5d6e7f80.png", false},
		{"app_3f2a9c1b.js", false},
		{"app~3f2a9c1b.js", false},
		{"photo_3f2a9c1b5d6e7f80.jpg", false},
		{"3f2a9c1b.js", false}, /* no stem */
		{".3f2a9c1b.js", false},
		{"d41d8cd98f00b204e9800998ecf8427e.png", false},
		{"550e8400-e29b-41d4-a716-446655440000.png", false},
		{"user-550e8400e29b41d4a716446655440000.png", false},
		{"app.3F2A9C1B.css", false}, /* no tool writes capitals */
		{"app.3f2a9c1.js", false},   /* seven digits */
		{"app.3f2a9c1b0.js", false}, /* nine */
		{"app.3f2a9g1b.js", false},  /* not a hexadecimal digit */
		{"app3f2a9c1b.js", false},   /* not a part of its own */
		{"3f2a9c1b/app.js", false},  /* that of a directory */
		{"app.3f2a9c1b", false},     /* it is the suffix */
		{"app.3f2a9c1b.map", false}, /* the same, of a map */
		{"app.3f2a9c1b.pdf", false}, /* no tool writes those */
		{"page.3f2a9c1b.html", false},
		{"main.deadbeef.css", false},
		{"main.12345678.css", false},
		{"main.ff0000ff.css", false}, /* a colour */
		{"swatch-37F4D3FF.png", false},
		{"photo-20240131.jpg", false},
		{"jquery-3.6.0.min.js", false},
		{"report-2024-01-31.pdf", false},
		/* base32 */
		{"chunk-7XQ2MZP4.js", true},
		{"chunk-GTYZPZCO.js", true},
		{"logo-J5OJ2N3P.svg", true},
		{"logo-JSOJNZ3P.svg", false}, /* in a script's name it would be one */
		{"foto-IMG2345A.jpg", false},
		{"photo-IPHONE7S.jpg", false},
		{"button-DOWNLOAD.js", false},
		{"lib-WIN32API.js", false},
		{"lib-UTF16TXT.js", false},
		{"flyer-WORKSHOP.png", false},
		{"KaTeX_Main-Regular-GTYZPZCO.woff", true},
		{"chunk-7XQ8MZP4.js", false}, /* base32 has no 8 */
		{"manual-VERTICAL.svg", false},
		{"manual-VERSION2.svg", false},
		{"map-EPSG4326.png", false},
		/* base64url */
		{"index-BxK2a9fQ.css", true},
		{"index-B-K2_9fQ.css", true},
		{"index.BxK2a9fQ.js", true},
		{"index-BxK2a9fQ.js.map", true},
		{"a/b/index-BxK2a9fQ.css", true},
		{"index-BxKdaafQ.css", true}, /* no digit */
		{"logo-BxK2a9fQ.png", true},
		{"logo.BxK2a9fQ.png", false},
		{"index_BxK2a9fQ.css", false},
		{"indexBxK2a9fQ.css", false},
		{"BxK2a9fQ.css", false},
		{"-BxK2a9fQ.css", false},
		{"index-BxK2a9fQ.pdf", false},
		{"index-bxk2a9fq.css", false}, /* no capital */
		{"index-BXK8A9FQ.css", false}, /* no small letter */
		{"my-Release2.js", false},
		{"jquery-DataGrid.js", false},
		{"struct.BTreeMap.js", false},
		{"trait.OsStrExt.js", false},
		{"org.gnome.GTimeLog.svg", false},
		{"notes-u2doThin.svg", false},
		{"Series-C-Form-K.svg", false},
		{"100px-PC_img01.jpg", false},
		{"photo-IMG_0042.jpg", false},
		{"video-dQw4w9WgXcQ.jpg", false},
		{"style-V2-final.css", false},
		{"styles-3May2024.css", false},
		{"style-decade80.css", false},
		{"app-iOS-v1_2.js", false},
		{"datepicker-en-GB-v2.js", false},
		{"script-5-Apr-24.js", false},
		{"show-S01E02v2.mp4", false},
		{"screenshot-Win10x64.png", false},
		{"icon-iPadPro2.png", false},
		{"photo-MeAndYou.jpg", false},
		{"photo-dQ4w9WgX.jpg", true}, /* no rule tells such a name from Vite's */
		{"ElstobD-10ptBold.otf", false},
		/* directories in which tools keep hashed files */
		{"_next/static/chunks/1i_g-5utc1_u6.js", true},
		{"docs/_next/static/css/3f2a9c1b5d6e7f80.css", true},
		{"_app/immutable/nodes/161.BP8K2I1j.js", true},
		{"_astro/banner.Ll_cJmUv_Z2mENRJ.webp", true},
		{"_app/immutable/chunks/BRG3Xq5u.js", true},
		{"_app/immutable/chunks/BxGaTqXc.js", true},
		{"_next/static/media/e4af272ccee01ff0-s.p.woff2", true},
		{"_next/static/chunks/app/about/page-3f2a9c1b5d6e7f80.js", true},
		{"_next/static/build/_buildManifest.js", false}, /* the id of a build may be fixed */
		{"_next/static/build/_clientMiddlewareManifest.js", false},
		{"_next/static/css/styles.css", false},
		{"_astro/hoisted.js", false}, /* so named by the owner's configuration */
		{"_astro/roboto-latin-400-normal.woff2", false},
		{"_astro/bootstrap5.js", false},
		{"_app/immutable/3f2a9c1b5d6e7f80/app.js", false},
		{"my_next/static/app.js", false},
		{"_next/static/index.html", false},
		{"_next/data/app.js", false},
		{"_astro/", false},
		/* special cases */
		{"", false},
		{".", false},
		{".map", false},
		{"a/", false},
		{"app.js.map", false},
		{"app..js", false},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		if (is_hashed(cases[i].path) != cases[i].hashed)
			fail_msg("'%s' is %s to carry a hash", cases[i].path, cases[i].hashed ? "not said" : "said");
}

/* Returns what percentage of the names in a file of tests/names are taken to have a hash. */
static double hashed_of(const char *name, bool show) {
	char path[64], line[4096];
	unsigned count = 0, hashed = 0;
	snprintf(path, sizeof path, "tests/names/%s.gz", name);
	gzFile file = gzopen(path, "r");
	if (!file) fail_msg("%s: run this from the top of the source", path);
	while (gzgets(file, line, sizeof line)) {
		line[strcspn(line, "\n")] = '\0';
		bool is = is_hashed(line);
		if (is && show) print_message("%s: %s is said to carry a hash\n", name, line);
		count++;
		hashed += is;
	}
	gzclose(file);
	assert_true(count >= 896);
	print_message("%s: %u of %u\n", name, hashed, count);
	return 100.0 * hashed / count;
}

static void names_of_build_tools_are_recognised(void **state) {
	(void)state;
	static const struct {
		const char *tool;
		double least; /* percent */
	} tools[] = {{"vite", 80},   {"rollup", 87},  {"webpack", 100}, {"esbuild", 78},
				 {"parcel", 96}, {"angular", 76}, {"hugo", 100},    {"next", 97}};
	for (size_t i = 0; i < COUNT(tools); i++) assert_true(hashed_of(tools[i].tool, false) >= tools[i].least);
}

static void names_that_people_choose_are_not(void **state) {
	(void)state;
	assert_true(hashed_of("debian", true) == 0);
	assert_true(hashed_of("fake", true) < 0.1); /* one of them looks just like Vite's */
}

static void a_name_with_a_hash_is_for_ever_and_any_other_is_asked_for_again(void **state) {
	(void)state;
	static const struct {
		const char *path, *type;
		bool restricted;
		const char *value;
		bool is_substitute;
	} cases[] = {
		{"index.html", "text/html; charset=utf-8", false, "no-cache", false},
		{"index.html", "text/html; charset=utf-8", true, "private, no-cache", false},
		{"a.xhtml", "application/xhtml+xml", false, "no-cache", false},
		{"page.3f2a9c1b.html", "text/html; charset=utf-8", false, "no-cache", false},
		{"app.3f2a9c1b.js", "text/javascript; charset=utf-8", false, "public, max-age=31536000, immutable", false},
		{"app.3f2a9c1b.js", "text/javascript; charset=utf-8", true, "private, max-age=31536000, immutable", false},
		{"app.3f2a9c1b.js", "text/javascript; charset=utf-8", false, "no-cache", true},
		{"none.3f2a9c1b.png", "image/png", false, "no-cache", true},
		{"none.3f2a9c1b.png", "image/png", true, "private, no-cache", true},
		{"app.js", "text/javascript; charset=utf-8", false, "no-cache", false},
		{"app.js", "text/javascript; charset=utf-8", true, "private, no-cache", false},
		{"live.m3u8", "application/vnd.apple.mpegurl", false, "no-cache", false},
		{"latest.yml", "application/octet-stream", false, "no-cache", false},
		{"notes", "application/octet-stream", false, "no-cache", false},
		{"a.txt", "text/htm", false, "no-cache", false},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		check_slice(
			cache_control_default(slice_of(cases[i].path), cases[i].type, cases[i].restricted, cases[i].is_substitute),
			cases[i].value);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hash_in_a_name_is_told_from_words_dates_and_versions),
		cmocka_unit_test(names_of_build_tools_are_recognised),
		cmocka_unit_test(names_that_people_choose_are_not),
		cmocka_unit_test(a_name_with_a_hash_is_for_ever_and_any_other_is_asked_for_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
