/* test_listing.c - directories as pages: their entries, the order of these, and that the announced length is right. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "gatling/files/docroot.h"
#include "gatling/site/listing/listing.h"
#include "gatling/site/listing/natural_order.h"

static struct docroot docroot;
static char root_path[] = "/tmp/gatling-test-XXXXXX";
static const size_t no_limit = 1 << 24;

static void touch(const char *name, size_t size) {
	int fd = openat(docroot.root, name, O_WRONLY | O_CREAT, 0644);
	assert_int_not_equal(fd, -1);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

static int set_up(void **state) {
	(void)state;
	umask(0);
	strcpy(root_path, "/tmp/gatling-test-XXXXXX");
	if (!mkdtemp(root_path)) return -1;
	chmod(root_path, 0755);
	docroot.root = open(root_path, O_RDONLY | O_DIRECTORY);
	return docroot.root == -1;
}

static int tear_down(void **state) {
	(void)state;
	char command[64];
	close(docroot.root);
	snprintf(command, sizeof command, "rm -r %s", root_path);
	return system(command); // NOLINT(cert-env33-c)
}

/* Returns the whole listing, read in pieces of that size, with a NUL behind it; the caller frees it. */
static char *read_all(struct listing *l, size_t piece) {
	struct listing_reader *reader = listing_read(l);
	size_t length = (size_t)listing_length(l);
	char *text = malloc(length + 1);
	for (size_t at = 0; at < length;) {
		size_t want = piece < length - at ? piece : length - at;
		assert_int_equal(listing_fill(reader, text + at, want), want);
		at += want;
	}
	assert_int_equal(listing_fill(reader, text + length, 1), -1);
	assert_int_equal(errno, EIO);
	listing_reader_free(reader);
	text[length] = '\0';
	return text;
}

static struct listing *listing_of(size_t bytes, enum listing_format format, const char *title) {
	struct listing_request wanted = {
		.path = ".", .title = slice_of(title), .of_site = !*title, .format = format, .bytes = bytes};
	struct listing *l;
	assert_int_equal(listing_make(&docroot, &wanted, NULL, &l), 0);
	return l;
}

static void check_has(const char *text, const char *part) {
	assert_non_null(text);
	if (!strstr(text, part)) fail_msg("'%s' is not in:\n%s", part, text);
}

static void make_odd_ones(void) {
	touch("<b>&\"'", 3);
	touch("new\nline", 0);
	touch("a:b", 1);
	touch("\xc3\xbc\xe2\x98\x83", 1536);
	touch("latin\xe9", 0);
	touch(".hidden", 0);
	touch("_headers", 0);
	touch("\xc0\xae", 0); /* overlong: no request can have this name */
	char longest[NAME_MAX + 1];
	memset(longest, '&', NAME_MAX);
	longest[NAME_MAX] = '\0';
	touch(longest, 0);
	assert_int_equal(mkdirat(docroot.root, "folder", 0755), 0);
	assert_int_equal(symlinkat("https://example.org/", docroot.root, "elsewhere"), 0);
	assert_int_equal(symlinkat("nowhere", docroot.root, "dangling"), 0);
}

static void it_is_as_long_as_it_says_in_pieces_of_any_size(void **state) {
	(void)state;
	static const size_t pieces[] = {1, 7, 4096, 65536};
	make_odd_ones();
	for (int format = LISTING_HTML; format <= LISTING_JSON; format++) {
		struct listing *l = listing_of(no_limit, (enum listing_format)format, "d/");
		char *first = read_all(l, 1 << 20);
		for (size_t i = 0; i < COUNT(pieces); i++) {
			char *text = read_all(l, pieces[i]);
			assert_string_equal(text, first);
			free(text);
		}
		free(first);
		listing_release(l);
	}
}

static void names_are_shown_and_linked_whatever_they_are(void **state) {
	(void)state;
	make_odd_ones();
	struct listing *l = listing_of(no_limit, LISTING_HTML, "a&b/");
	char *page = read_all(l, 4096);
	check_has(page, "<title>/a&amp;b/</title>");
	check_has(page, "<a href=\"./%3Cb%3E%26%22%27\">&lt;b&gt;&amp;&quot;&#39;</a><td title=\"3 bytes\">3 B");
	check_has(page, "\"./new%0Aline\">new\u240aline</a>");
	check_has(page, "\"./a%3Ab\">a:b</a><td title=\"1 byte\">1 B");
	check_has(page, "\"./latin%E9\">latin\uFFFD</a>");
	check_has(page, "title=\"1536 bytes\">1.5 KiB");
	check_has(page, "\"./elsewhere\">elsewhere</a><td><td>");
	check_has(page, "\"./folder/\">folder/</a>");
	check_has(page, "_headers"); /* below a site's root it is an ordinary file */
	assert_null(strstr(page, "hidden\""));
	assert_null(strstr(page, "dangling"));
	free(page);
	listing_release(l);
}

static void json_says_the_same(void **state) {
	(void)state;
	touch("<b>&\"'\\", 3);
	touch("new\nline", 0);
	touch("latin\xe9", 0);
	assert_int_equal(mkdirat(docroot.root, "folder", 0755), 0);
	touch("_headers", 0);
	struct listing *l = listing_of(no_limit, LISTING_JSON, "");
	char *text = read_all(l, 4096);
	check_has(text, "[{\"name\":\"folder\",\"type\":\"directory\",\"mtime\":\"2");
	check_has(text, "{\"name\":\"<b>&\\\"'\\\\\",\"type\":\"file\",\"size\":3,");
	check_has(text, "\"name\":\"new\\nline\"");
	check_has(text, "\"name\":\"latin\uFFFD\",\"href\":\"latin%E9\"");
	assert_null(strstr(text, "_headers"));
	free(text);
	listing_release(l);
}

static void what_is_too_much_is_left_out_and_said(void **state) {
	(void)state;
	for (int i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof name, "f%d", i);
		touch(name, 0);
	}
	struct listing *l = listing_of(300, LISTING_HTML, "d/");
	char *page = read_all(l, 4096);
	check_has(page, "there are more, which are not shown");
	assert_true(listing_memory(l) < 100000);
	free(page);
	listing_release(l);
	l = listing_of(300, LISTING_JSON, "d/");
	char *text = read_all(l, 4096);
	check_has(text, "},\n{\"type\":\"more\"}]\n");
	free(text);
	listing_release(l);
}

static void what_cannot_be_listed_is_said(void **state) {
	(void)state;
	struct listing *l;
	atomic_bool stop = true;
	assert_int_equal(mkdirat(docroot.root, "secret", 0711), 0);
	touch("file", 0);
	assert_int_equal(listing_make(&docroot, &(struct listing_request){.path = "none"}, NULL, &l), ENOENT);
	assert_int_equal(listing_make(&docroot, &(struct listing_request){.path = "secret"}, NULL, &l), EACCES);
	assert_int_equal(listing_make(&docroot, &(struct listing_request){.path = "file"}, NULL, &l), ENOTDIR);
	assert_int_equal(listing_make(&docroot, &(struct listing_request){.path = "."}, &stop, &l), ECANCELED);
}

static void compressed_it_is_the_same(void **state) {
	(void)state;
	make_odd_ones();
	for (int format = LISTING_HTML; format <= LISTING_JSON; format++) {
		struct listing_request wanted = {
			.path = ".", .title = slice_of("d/"), .format = (enum listing_format)format, .bytes = no_limit};
		struct listing *l, *packed;
		assert_int_equal(listing_make(&docroot, &wanted, NULL, &l), 0);
		wanted.coding = CODING_GZIP;
		assert_int_equal(listing_make(&docroot, &wanted, NULL, &packed), 0);
		assert_int_equal(listing_coding(l), CODING_IDENTITY);
		assert_int_equal(listing_coding(packed), CODING_GZIP);
		assert_true(listing_memory(packed) < listing_length(l));
		char *text = read_all(l, 4096), *bytes = read_all(packed, 100);
		size_t room = (size_t)listing_length(l) + 1;
		char *unpacked = malloc(room);
		z_stream z = {.next_in = (Bytef *)bytes,
					  .avail_in = (uInt)listing_length(packed),
					  .next_out = (Bytef *)unpacked,
					  .avail_out = (uInt)room};
		assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.total_out, listing_length(l));
		assert_memory_equal(unpacked, text, room - 1);
		inflateEnd(&z);
		free(unpacked);
		free(bytes);
		free(text);
		listing_release(packed);
		listing_release(l);
	}
}

static void names_are_in_the_order_of_people(void **state) {
	(void)state;
	static const char *const sorted[] = {"",     "1",     "02",    "2",       "10",     "1000000000000000000000000",
										 "a",    "A.txt", "a.txt", "a0",      "a1b",    "a1c",
										 "a01d", "b",     "B2",    "file2",   "file10", "File10x",
										 "v1.9", "v1.10", "z",     "\xc3\xa9"};
	for (size_t i = 0; i < COUNT(sorted); i++)
		for (size_t j = 0; j < COUNT(sorted); j++) {
			int order = natural_order_compare(sorted[i], sorted[j]);
			if ((order > 0) != (i > j) || (order < 0) != (i < j)) fail_msg("'%s' and '%s'", sorted[i], sorted[j]);
		}
}

static void a_reader_outlives_who_made_the_listing(void **state) {
	(void)state;
	char byte;
	touch("a", 0);
	struct listing *l = listing_of(no_limit, LISTING_HTML, "");
	struct listing_reader *reader = listing_read(l);
	listing_release(l);
	assert_int_equal(listing_fill(reader, &byte, 1), 1);
	listing_reader_free(reader);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(it_is_as_long_as_it_says_in_pieces_of_any_size),
		TEST(names_are_shown_and_linked_whatever_they_are),
		TEST(json_says_the_same),
		TEST(what_is_too_much_is_left_out_and_said),
		TEST(what_cannot_be_listed_is_said),
		TEST(compressed_it_is_the_same),
		TEST(names_are_in_the_order_of_people),
		TEST(a_reader_outlives_who_made_the_listing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
