/* test_coding.c - which coding is chosen for an Accept-Encoding. */
#include "gatling/http/coding.h"
#include "tests/unit/check.h"

enum { I = 1 << CODING_IDENTITY, G = 1 << CODING_GZIP, Z = 1 << CODING_ZSTD, B = 1 << CODING_BR, ALL = I | G | Z | B };

/* Returns a request with these Accept-Encoding lines, valid until the next call. */
static struct request request_accepting(const char *const *lines, size_t count) {
	static char text[1024];
	struct request request;
	size_t n = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (size_t i = 0; i < count && lines[i]; i++)
		n += (size_t)sprintf(text + n, "Accept-Encoding: %s\r\nX-Between: gzip\r\n", lines[i]);
	n += (size_t)sprintf(text + n, "\r\n");
	assert_int_equal(request_parse(&request, text, n), n);
	return request;
}

/* Returns the coding that is chosen for such a request. */
static int chosen_for(const char *const *lines, size_t count, unsigned there) {
	const struct request request = request_accepting(lines, count);
	return coding_choose(&request, there);
}

static void what_the_client_likes_best_is_chosen_of_what_is_there(void **state) {
	(void)state;
	static const struct {
		const char *lines[3];
		unsigned there;
		int chosen; /* -1: none */
	} cases[] = {
		/* no field, an empty one, or only unsupported codings */
		{{NULL}, ALL, CODING_IDENTITY},
		{{""}, ALL, CODING_IDENTITY},
		{{" , ,"}, ALL, CODING_IDENTITY},
		{{"compress, deflate"}, ALL, CODING_IDENTITY},
		/* equal weights: the smallest one */
		{{"gzip, deflate, br, zstd"}, ALL, CODING_BR},
		{{"gzip, deflate, br, zstd"}, I | G | Z, CODING_ZSTD},
		{{"gzip, deflate, br, zstd"}, I | G, CODING_GZIP},
		{{"gzip, deflate, br, zstd"}, I, CODING_IDENTITY},
		{{"br,gzip"}, I | Z, CODING_IDENTITY},
		{{"GZip"}, ALL, CODING_GZIP},
		{{"x-gzip"}, ALL, CODING_GZIP},
		{{"X-GZIP;q=0.5"}, ALL, CODING_GZIP},
		/* weights */
		{{"br;q=0.5, gzip;q=0.8"}, ALL, CODING_GZIP},
		{{"br;q=0.5, gzip;q=0.8"}, I | B, CODING_BR},
		{{"br;q=0.998,zstd;q=0.999,gzip;q=0.99"}, ALL, CODING_ZSTD},
		{{"gzip;q=0.25, br;q=0.125", "zstd;q=1"}, ALL, CODING_ZSTD},
		{{"gzip;q=0.25, br;q=0.125", "zstd;q=1"}, I | G | B, CODING_GZIP},
		{{"gzip;q=0.25, br;q=0.125", "zstd;q=1"}, I | B, CODING_BR},
		{{"gzip;q=0.01, br;q=0.009"}, ALL, CODING_GZIP},
		{{"br ; q=0.1 ,\tgzip\t;\tq=1.000"}, ALL, CODING_GZIP},
		{{"br;Q=0.1, gzip"}, ALL, CODING_GZIP},
		{{"identity, gzip;q=0.5"}, ALL, CODING_IDENTITY},
		{{"identity;q=0.5, gzip;q=0.5"}, ALL, CODING_GZIP},
		{{"identity;q=0.6, gzip;q=0.5"}, ALL, CODING_IDENTITY},
		{{"gzip;q=0.001"}, ALL, CODING_GZIP}, /* preferred to a coding that is not mentioned */
		/* refused */
		{{"gzip;q=0"}, I | G, CODING_IDENTITY},
		{{"gzip;q=0.000, br"}, I | G | B, CODING_BR},
		{{"gzip;q=0"}, G, -1},
		{{"br"}, G, -1},
		{{NULL}, G | B, CODING_BR},               /* without the field, nothing is refused */
		{{"identity;q=0"}, ALL, CODING_IDENTITY}, /* better than no response */
		{{"identity;q=0, gzip"}, ALL, CODING_GZIP},
		{{"identity;q=0"}, G, -1},
		/* all others */
		{{"*"}, ALL, CODING_BR},
		{{"*"}, I | G, CODING_GZIP},
		{{"*"}, I, CODING_IDENTITY},
		{{"*;q=0"}, ALL, CODING_IDENTITY},
		{{"*;q=0"}, G, -1},
		{{"gzip, *;q=0"}, ALL, CODING_GZIP},
		{{"gzip, *;q=0"}, I | B, CODING_IDENTITY},
		{{"*;q=0.5, br;q=0"}, ALL, CODING_ZSTD},
		{{"br;q=0, *"}, ALL, CODING_ZSTD},
		{{"gzip;q=0.5, *;q=0.7"}, I | G | B, CODING_BR},
		{{"*;q=0.5, identity"}, ALL, CODING_IDENTITY},
		/* several lines are one list */
		{{"gzip", "br"}, ALL, CODING_BR},
		{{"gzip;q=0.3", "br;q=0.2", "zstd;q=0.1"}, ALL, CODING_GZIP},
		{{"*;q=0", "gzip"}, ALL, CODING_GZIP},
		{{"", "br"}, ALL, CODING_BR},
		/* the last weight counts */
		{{"gzip, gzip;q=0"}, I | G, CODING_IDENTITY},
		{{"gzip;q=0", "gzip"}, I | G, CODING_GZIP},
		/* an invalid weight is ignored */
		{{"gzip;q="}, I | G, CODING_GZIP},
		{{"gzip;q=x, br;q=0.9"}, ALL, CODING_GZIP},
		{{"gzip;q=2, br;q=0.9"}, ALL, CODING_GZIP},
		{{"gzip;q=0.1234, br;q=0.9"}, ALL, CODING_GZIP},
		{{"gzip;q=-1, br;q=0.9"}, ALL, CODING_GZIP},
		{{"gzip;q=0,5"}, I | G, CODING_IDENTITY}, /* q=0, and a coding "5" */
		{{"gzip;level=9"}, I | G, CODING_GZIP},
		{{"gzip;level=9;q=0.5, br;q=0.6"}, ALL, CODING_BR},
		{{"gzip;q=0.5;level=9, br ; q=0.4"}, ALL, CODING_GZIP},
		{{"gzip;"}, I | G, CODING_GZIP},
		{{"gzip;q=1.5, br;q=0.999"}, ALL, CODING_GZIP},
		{{"gzip;q=0."}, I | G, CODING_IDENTITY},
		{{"gzip;q=00"}, I | G, CODING_GZIP},
		/* names that only begin like a coding */
		{{"gzipped, brotli, zstandard, g, b"}, ALL, CODING_IDENTITY},
		{{"*x"}, ALL, CODING_IDENTITY},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int chosen = chosen_for(cases[i].lines, 3, cases[i].there);
		if (chosen != cases[i].chosen)
			fail_msg("case %zu, '%s' of %x: %d, not %d", i, cases[i].lines[0] ? cases[i].lines[0] : "", cases[i].there,
					 chosen, cases[i].chosen);
	}
}

static void of_what_the_client_likes_as_much_the_smallest_is_chosen(void **state) {
	(void)state;
	static const uint64_t size[CODINGS] = {
		[CODING_IDENTITY] = 100, [CODING_GZIP] = 40, [CODING_ZSTD] = 30, [CODING_BR] = 40};
	static const struct {
		const char *line;
		int chosen;
	} cases[] = {
		{"gzip, br, zstd", CODING_ZSTD},
		{"gzip, br", CODING_BR}, /* of equal sizes the last one of enum coding */
		{"gzip, br;q=0.9, zstd;q=0.9", CODING_GZIP},
		{"gzip;q=0.5, br;q=0.9, zstd;q=0.9", CODING_ZSTD},
		{"identity, zstd;q=0.9", CODING_IDENTITY},
		{"identity, zstd", CODING_ZSTD},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct request request = request_accepting(&cases[i].line, 1);
		assert_int_equal(coding_choose_smallest(&request, ALL, size), cases[i].chosen);
	}
}

static void differences_are_for_those_that_name_them(void **state) {
	(void)state;
	enum { DCZ = 1 << CODING_DCZ, DCB = 1 << CODING_DCB };
	static const struct {
		const char *line;
		unsigned made;
		enum coding than;
		unsigned chosen;
	} cases[] = {
		{"gzip, br, zstd, dcb, dcz", DCZ | DCB, CODING_BR, DCZ | DCB},
		{"gzip, br, zstd, dcb, dcz", DCZ, CODING_BR, DCZ},
		{"dcb, dcz;q=0.9", DCZ | DCB, CODING_IDENTITY, DCB},
		{"dcb;q=0.1, dcz;q=0.9", DCZ | DCB, CODING_IDENTITY, DCZ},
		{"dcb, dcz;q=0.9", DCZ, CODING_IDENTITY, DCZ},
		{"dcb", DCZ, CODING_IDENTITY, 0},
		{"DCB", DCZ | DCB, CODING_IDENTITY, DCB},
		{"dcb;q=0, dcz;q=0.0", DCZ | DCB, CODING_IDENTITY, 0},
		{"*", DCZ | DCB, CODING_BR, 0},
		{"*;q=0, dcz", DCZ | DCB, CODING_IDENTITY, DCZ},
		{"gzip, dcb;q=0.5", DCZ | DCB, CODING_GZIP, 0}, /* it likes gzip better */
		{"gzip;q=0.5, dcb;q=0.5", DCZ | DCB, CODING_GZIP, DCB},
		{"identity;q=0.9, dcb;q=0.5", DCZ | DCB, CODING_IDENTITY, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct request request = request_accepting(&cases[i].line, 1);
		assert_int_equal(coding_differences(&request, cases[i].made, cases[i].than), cases[i].chosen);
	}
	const struct request silent = request_accepting(NULL, 0);
	assert_int_equal(coding_differences(&silent, DCZ | DCB, CODING_IDENTITY), 0);
}

static void what_is_accepted_is_named(void **state) {
	(void)state;
	static const struct {
		const char *line;
		enum coding coding;
		bool accepted;
	} cases[] = {
		{"gzip, br", CODING_GZIP, true},        {"gzip, br", CODING_ZSTD, false},
		{"gzip;q=0, br", CODING_GZIP, false},   {"*", CODING_GZIP, false},
		{"x-gzip;q=0.1", CODING_GZIP, true},    {"dcz", CODING_DCZ, true},
		{"gzip, gzip;q=0", CODING_GZIP, false}, /* the last weight counts, as where one is chosen */
		{"gzip;q=0, gzip", CODING_GZIP, true},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct request request = request_accepting(&cases[i].line, 1);
		assert_int_equal(coding_accepted(&request, cases[i].coding), cases[i].accepted);
	}
}

static void nothing_to_choose_from_is_nothing(void **state) {
	(void)state;
	static const char *const lines[] = {"*"};
	assert_int_equal(chosen_for(lines, 1, 0), -1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_client_likes_best_is_chosen_of_what_is_there),
		cmocka_unit_test(of_what_the_client_likes_as_much_the_smallest_is_chosen),
		cmocka_unit_test(differences_are_for_those_that_name_them),
		cmocka_unit_test(what_is_accepted_is_named),
		cmocka_unit_test(nothing_to_choose_from_is_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
