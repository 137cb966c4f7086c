/* test_path.c - request paths, hosts, and media types. */
#include "tests/unit/check.h"

#include "gatling/http/host.h"
#include "gatling/media/media_type.h"
#include "gatling/http/path.h"

static void check_path(const char *encoded, const char *wanted) {
	char out[256];
	size_t length;
	if (path_decode(slice_of(encoded), out, &length) != 0) fail_msg("%s is refused", encoded);
	check_slice((struct slice){.at = out, .length = length}, wanted);
}

static void paths_become_relative_and_plain(void **state) {
	(void)state;
	static const char *const cases[][2] = {
		{"/", ""},
		{"/a", "a"},
		{"/a/", "a/"},
		{"/a/b.html", "a/b.html"},
		{"//a///b//", "a/b/"},
		{"/a/./b", "a/b"},
		{"/a/b/..", "a/"},
		{"/a/b/../", "a/"},
		{"/a/b/../c", "a/c"},
		{"/..", ""},
		{"/../../a", "a"},
		{"/a/../../b", "b"},
		{"/%61%2E%62", "a.b"},
		{"/a/%2e%2E/b", "b"},
		{"/%2e/a", "a"},
		{"/a%20b", "a b"},
		{"/a+b", "a+b"},
		{"/%25", "%"},
		{"/%e2%82%ac", "\xe2\x82\xac"},
		{"/%e0%a0%80", "\xe0\xa0\x80"},
		{"/%f0%90%80%80", "\xf0\x90\x80\x80"},
		{"/%f0%9f%98%80", "\xf0\x9f\x98\x80"},
		{"/caf%e9", "caf\xe9"},
		{"/.well-known/x", ".well-known/x"},
		{"/a..b/c.", "a..b/c."},
		{"/a\\b", "a\\b"},
		{"/./", ""},
	};
	for (size_t i = 0; i < COUNT(cases); i++) check_path(cases[i][0], cases[i][1]);
}

static void refused_paths_have_their_status(void **state) {
	(void)state;
	static const struct {
		const char *encoded;
		int status;
	} cases[] = {
		{"/%", 400},
		{"/%4", 400},
		{"/%zz", 400},
		{"/a%0", 400},
		{"/%00", 400},
		{"/a%00.html", 400},
		{"/%c0%ae", 400},
		{"/%c1%9c", 400},
		{"/%e0%80%ae", 400},
		{"/%f0%80%80%ae", 400},
		{"/\xc0\xae", 400},
		{"/a%2fb", 404},
		{"/%2F", 404},
		{"/.a", 404},
		{"/a/.b", 404},
		{"/.a/b", 404},
		{"/...", 404},
		{"/%2egit", 404},
		{"/a/.well-known/x", 404},
		{"/.well-known/.x", 404},
		{"/.well-knownx", 404},
	};
	char out[64];
	size_t length;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (path_decode(slice_of(cases[i].encoded), out, &length) != cases[i].status) fail_msg("%s", cases[i].encoded);
	}
}

static void a_path_has_so_many_segments(void **state) {
	char path[4 * PATH_SEGMENTS_MAX + 16] = "/", out[sizeof path];
	size_t length;
	(void)state;
	for (int i = 0; i < PATH_SEGMENTS_MAX; i++) strcat(path, "a/");
	assert_int_equal(path_decode(slice_of(path), out, &length), 0);
	assert_int_equal(length, 2 * PATH_SEGMENTS_MAX);
	strcat(path, "../b");
	assert_int_equal(path_decode(slice_of(path), out, &length), 0);
	strcat(path, "/c");
	assert_int_equal(path_decode(slice_of(path), out, &length), 404);
}

static void encoding_and_decoding_come_back_to_the_same_name(void **state) {
	(void)state;
	char name[255], encoded[1 + 3 * sizeof name] = "/", decoded[sizeof encoded];
	size_t length = 0, decoded_length;
	for (int c = 1; c < 256; c++)
		if (c != '/' && c != 0xC0 && c != 0xC1) name[length++] = (char)c;
	size_t n = 1 + path_encode((struct slice){.at = name, .length = length}, encoded + 1);
	for (size_t i = 0; i < n; i++) assert_true((unsigned char)encoded[i] > ' ' && (unsigned char)encoded[i] < 127);
	assert_int_equal(path_decode((struct slice){.at = encoded, .length = n}, decoded, &decoded_length), 0);
	assert_int_equal(decoded_length, length);
	assert_memory_equal(decoded, name, length);
}

static void of_a_target_what_no_uri_holds_is_encoded(void **state) {
	(void)state;
	static const struct {
		const char *target, *encoded;
	} cases[] = {
		{"/a-b._~/c", "/a-b._~/c"},     {"?a=b&c=!$'()*+,;:@/?", "?a=b&c=!$'()*+,;:@/?"},
		{"/%41%zz%4", "/%41%25zz%254"}, {"/\"<>\\^`{|}[]", "/%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D"},
		{"/caf\xc3\xa9", "/caf%C3%A9"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char out[100];
		size_t n = path_encode_target(slice_of(cases[i].target), out);
		check_slice((struct slice){.at = out, .length = n}, cases[i].encoded);
	}
}

static void hosts_are_checked(void **state) {
	(void)state;
	static const char *const good[] = {"a",    "a.b",   "A-b_c.d.", "1.2.3.4", "1.2.3.4:80",       "a:",     "a:0",
									   "[::]", "[::1]", "[::1]:80", "a:65535", "[::ffff:1.2.3.4]", "a:00080"};
	static const char *const bad[] = {"",
									  ".",
									  ".a",
									  "a..b",
									  "a/b",
									  "a b",
									  ":80",
									  "a:b",
									  "a:123456",
									  "[::1",
									  "[]",
									  "[/]",
									  "a\\",
									  "a%00",
									  "a,b",
									  "@a",
									  "a@b",
									  "::1",
									  "[::1]x",
									  "a\x80",
									  "[zz]",
									  "[-]",
									  "[v1.x]",
									  "[:::::]",
									  "[1.2.3.4]",
									  "[ ::1]",
									  "[::1 ]",
									  "a:65536",
									  "a:99999",
									  "[::1]:65536",
									  "a:000080",
									  "[ab..cd::1]",
									  "[fe80::1%eth0]",
									  "[fe80::1%25eth0]",
									  "[1:2:3:4:5:6:7:8:9]"};
	for (size_t i = 0; i < COUNT(good); i++)
		if (!host_valid(slice_of(good[i]))) fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < COUNT(bad); i++)
		if (host_valid(slice_of(bad[i]))) fail_msg("%s is accepted", bad[i]);
	assert_false(host_valid((struct slice){.at = "[::1\0]", .length = 6}));
	char name[HOST_MAX + 2];
	memset(name, 'a', sizeof name);
	assert_true(host_valid((struct slice){.at = name, .length = HOST_MAX}));
	assert_false(host_valid((struct slice){.at = name, .length = HOST_MAX + 1}));
}

static void of_all_ways_to_write_a_host_one_is_normal(void **state) {
	(void)state;
	static const char *const normal[] = {"a", "a_b.c-d", "1.2.3.4", "a:80", "a:0", "[::1]", "[::1]:8443"};
	static const char *const others[] = {"",     "A",      "a.",        "a.:80", "a:",   "a:080", "a:00", "a:65536",
										 "a..b", "[::FF]", "[::1]:080", ".a",    "../a", "a/b",   ":80",  "a:80 "};
	for (size_t i = 0; i < COUNT(normal); i++)
		if (!host_normal(slice_of(normal[i]))) fail_msg("%s is refused", normal[i]);
	for (size_t i = 0; i < COUNT(others); i++)
		if (host_normal(slice_of(others[i]))) fail_msg("%s is accepted", others[i]);
}

static void the_name_of_a_host_is_in_lower_case_and_without_port_and_last_dot(void **state) {
	(void)state;
	static const char *const cases[][2] = {
		{"Example.ORG", "example.org"}, {"a.:80", "a"}, {"a:80", "a"}, {"[::FF]:80", "[::ff]"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char name[HOST_MAX];
		size_t n = host_name(slice_of(cases[i][0]), name);
		check_slice((struct slice){.at = name, .length = n}, cases[i][1]);
	}
}

static void types_go_by_the_last_extension_in_any_case(void **state) {
	(void)state;
	static const char *const cases[][2] = {
		{"index.html", "text/html"},
		{"a/b.CSS", "text/css"},
		{"x.tar.gz", "application/gzip"},
		{"3.3gp", "video/3gpp"},
		{"z.zst", "application/zstd"},
		{"a.js", "text/javascript"},
		{"a.wasm", "application/wasm"},
		{"Makefile", NULL},
		{"dir.html/file", NULL},
		{"a.", NULL},
		{"a.averyverylongextension", NULL},
		{"", NULL},
		{"a.bin", "application/octet-stream"},
		{"a.woff2", "font/woff2"},
		{"a.mjs", "text/javascript"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *type = media_type_of(slice_of(cases[i][0]));
		if (cases[i][1]) assert_string_equal(type, cases[i][1]);
		else assert_null(type);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_become_relative_and_plain),
		cmocka_unit_test(refused_paths_have_their_status),
		cmocka_unit_test(encoding_and_decoding_come_back_to_the_same_name),
		cmocka_unit_test(of_a_target_what_no_uri_holds_is_encoded),
		cmocka_unit_test(a_path_has_so_many_segments),
		cmocka_unit_test(hosts_are_checked),
		cmocka_unit_test(of_all_ways_to_write_a_host_one_is_normal),
		cmocka_unit_test(the_name_of_a_host_is_in_lower_case_and_without_port_and_last_dot),
		cmocka_unit_test(types_go_by_the_last_extension_in_any_case),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
