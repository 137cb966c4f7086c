/* test_charset.c - which texts are said to be in UTF-8, and what XML is. */
#include "gatling/media/charset.h"
#include "tests/unit/check.h"

static bool is_utf8(const char *type, const char *text, bool more) {
	return charset_is_utf8(slice_of(type), slice_of(text), more);
}

static void text_is_utf8_if_it_cannot_be_anything_else(void **state) {
	(void)state;
	static const struct {
		const char *text;
		bool whole, more; /* what is said of it, and of a file that goes on */
	} cases[] = {
		{"", true, false},
		{"plain text, longer than a word\n", true, false},
		{"\xc3\xbc", true, true},
		{"0123456789abcdef \xe2\x98\x83 0123456789abcdef", true, true},
		{"\xef\xbb\xbfplain", true, true},
		{"0123456789\xfc", false, false},
		{"\xc3\xbc \xfc", false, false},
		{"\xc3\xbc \xc3", false, true}, /* a character lies across the end */
		{"abc\xe2\x98", false, false},
		{"\xff\xfe", false, false},
		{"\xed\xa0\x80", false, false},
		{"\x1b$B$3$s", false, false}, /* ISO-2022-JP */
		{"01234567\x1b(J\\", false, false},
		{"\x1b[1mbold\x1b[0m", true, false},
		{"\x1b(B\xc3\xbc", true, true},
		{"a\x01"
		 "b\x7f",
		 true, false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (is_utf8("text/plain", cases[i].text, false) != cases[i].whole) fail_msg("case %zu, whole", i);
		if (is_utf8("text/plain", cases[i].text, true) != cases[i].more) fail_msg("case %zu, with more", i);
	}
	assert_false(charset_is_utf8(SLICE("text/plain"), SLICE("a\0b\0"), false));
	assert_false(charset_is_utf8(SLICE("text/plain"), SLICE("0123456789\0abcdef"), false));
}

static void each_byte_is_looked_at_wherever_it_is(void **state) {
	(void)state;
	static const char bytes[] = {'\0', '\xfc', '\x80'};
	for (size_t length = 1; length < 40; length++)
		for (size_t at = 0; at < length; at++)
			for (size_t i = 0; i < sizeof bytes; i++) {
				char text[40];
				memset(text, 'a', sizeof text);
				text[at] = bytes[i];
				assert_false(charset_is_utf8(SLICE("text/css"), (struct slice){.at = text, .length = length}, false));
			}
}

static void only_text_has_a_charset_and_xml_none(void **state) {
	(void)state;
	static const char *const with[] = {"text/html", "text/css", "text/javascript", "text/x-own"};
	static const char *const without[] = {"text/xml",      "text/x-own+xml",   "application/xml",
										  "image/svg+xml", "application/json", "application/octet-stream"};
	for (size_t i = 0; i < COUNT(with); i++) assert_true(is_utf8(with[i], "\xc3\xbc", false));
	for (size_t i = 0; i < COUNT(without); i++) assert_false(is_utf8(without[i], "\xc3\xbc", false));
	assert_false(is_utf8("text/x-opml", "<?xml version='1.0' encoding='koi8-r'?>", false));
	assert_true(is_utf8("text/html", "<?xml version='1.0'?><html>\xc3\xbc", false));
}

static void html_names_its_charset(void **state) {
	(void)state;
	static const char *const cases[][2] = {
		{"<meta charset=koi8-r>", "koi8-r"},
		{"<!doctype html><META CHARSET = 'Windows-1252' >", "Windows-1252"},
		{"<meta http-equiv=Content-Type content=\"text/html; charset=iso-8859-1\">", "iso-8859-1"},
		{"<meta name=a><meta content='text/html;charset=x'/>", "x"},
		{"<meta charset=utf-8/>", "utf-8"},
		{"<!-- <meta charset=a> --><meta charset=b>", "b"},
		{"<!-- <meta charset=a>", ""},
		{"charset=a <p charset=b>", ""},
		{"<meta charset>", ""},
		{"<meta charset=", ""},
		{"<meta name=charset content=a><meta charset=b>", "b"},
		{"<met", ""},
		{"", ""},
	};
	for (size_t i = 0; i < COUNT(cases); i++) check_slice(charset_of_html(slice_of(cases[i][0])), cases[i][1]);
	char late[1100];
	memset(late, ' ', sizeof late);
	memcpy(late + 1010, "<meta charset=x>", 16);
	assert_int_equal(charset_of_html((struct slice){.at = late, .length = sizeof late}).length, 0);
}

static void html_in_ascii_is_what_it_says(void **state) {
	(void)state;
	assert_false(is_utf8("text/html", "<meta charset=iso-8859-1>", false));
	assert_true(is_utf8("text/html", "<meta charset=iso-8859-1>\xc3\xbc", false)); /* it is wrong */
	assert_true(is_utf8("text/html", "<meta charset=UTF-8>", true));
	assert_true(is_utf8("text/html", "<meta charset='utf8'>", true));
	assert_true(is_utf8("text/html", "<p>", false));
	assert_false(is_utf8("text/html", "<p>", true));
	assert_true(is_utf8("text/css", "<meta charset=iso-8859-1>", false));
}

static void xml_goes_by_its_root(void **state) {
	(void)state;
	static const char *const cases[][2] = {
		{"<?xml version=\"1.0\"?><x/>", "application/xml"},
		{"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- <svg> -->\n<!DOCTYPE rss>\n<rss version=2>", "application/rss+xml"},
		{"<?xml version='1.0'?><?xml-stylesheet href='<svg>'?><feed xmlns='x'>", "application/atom+xml"},
		{"<?xml version='1.0'?><svg/>", "image/svg+xml"},
		{"<?xml\n?><rdf:RDF>", "application/rdf+xml"},
		{"<?xml version", "application/xml"},
		{"<?xml ?><rs", "application/xml"},
		{"<?xml", NULL},
		{"<?xml-stylesheet ?>", NULL},
		{" <?xml version='1.0'?>", NULL},
		{"<svg>", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *type = charset_xml_type(slice_of(cases[i][0]));
		if (!cases[i][1] != !type || (type && strcmp(type, cases[i][1]) != 0))
			fail_msg("case %zu: %s", i, type ? type : "none");
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_utf8_if_it_cannot_be_anything_else),
		cmocka_unit_test(each_byte_is_looked_at_wherever_it_is),
		cmocka_unit_test(only_text_has_a_charset_and_xml_none),
		cmocka_unit_test(html_names_its_charset),
		cmocka_unit_test(html_in_ascii_is_what_it_says),
		cmocka_unit_test(xml_goes_by_its_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
