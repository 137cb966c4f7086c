/* test_digest.c - the hash of content is the same on every machine. */
#include "tests/unit/check.h"

#include <sys/resource.h>
#include <unistd.h>

#include "gatling/files/digest.h"

static char text[3 * DIGEST_PIECE];

static void check_digest(const unsigned char *digest, const char *expected) {
	char hex[2 * DIGEST_LENGTH + 1];
	for (int i = 0; i < DIGEST_LENGTH; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, expected);
}

/* Expected values are those of mmh3.hash64() in Python. */
static void it_is_murmurhash3(void **state) {
	static const struct {
		size_t length;
		const char *digest;
	} cases[] = {{0, "00000000000000000000000000000000"},  {1, "4610abe56eff5cb551622daa78f83583"},
				 {7, "bd4c6987ca4b0d68613addd4bd25c787"},  {8, "47a7e1bdd68e2fc860e6ee02ec31dcc7"},
				 {9, "fbb4cb0f6e812d3278de751d0200ffb9"},  {15, "47231598fd4925e9cd846dee88c67de9"},
				 {16, "444924b591903f30ab906456762fe845"}, {17, "5c76f40f9fe7c20ec15f026b9edaa824"},
				 {31, "053dd3e1a32cd0949ee59aefb4005490"}, {32, "c66d9022b62f500f1c050a6e34c31151"},
				 {33, "7d41281bfaba461255ac8073a7d6a30b"}, {700, "70adc1c2f2971bafd22cfa96e13ddf31"}};
	const char fox[] = "The quick brown fox jumps over the lazy dog";
	unsigned char digest[DIGEST_LENGTH];
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *copy = malloc(cases[i].length + 1); /* of exact size, so that a sanitizer sees reads beyond the end */
		assert_non_null(copy);
		memcpy(copy, text, cases[i].length);
		digest_memory(copy, cases[i].length, digest);
		check_digest(digest, cases[i].digest);
		free(copy);
	}
	digest_memory(fox, sizeof fox - 1, digest);
	check_digest(digest, "e34bbc7bbc071b6c7a433ca9c49a9347");
}

static void a_file_has_the_hash_of_its_bytes(void **state) {
	const size_t sizes[] = {0, 1, DIGEST_PIECE - 1, DIGEST_PIECE, DIGEST_PIECE + 1, sizeof text};
	const atomic_bool stop = false, stopped = true;
	unsigned char digest[DIGEST_LENGTH], expected[DIGEST_LENGTH];
	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		char path[] = "/tmp/gatling-test-XXXXXX";
		int file = mkstemp(path);
		assert_true(file != -1 && unlink(path) == 0);
		assert_int_equal(write(file, text, sizes[i]), sizes[i]);
		digest_memory(text, sizes[i], expected);
		assert_int_equal(digest_compute(file, sizes[i], &stop, digest), 0);
		assert_memory_equal(digest, expected, DIGEST_LENGTH);
		assert_int_not_equal(digest_compute(file, sizes[i] + 1, &stop, digest), 0);
		if (sizes[i]) assert_int_not_equal(digest_compute(file, sizes[i], &stopped, digest), 0);
		close(file);
	}
}

/* A server that has read all files of a site does not use more memory for their hashes than necessary. */
static void the_hashes_of_files_made_together_share_pages(void **state) {
	enum { FILES = 4096, PAGES = 4 * FILES * 24 / 4096 };
	struct file_version version = {.device = 1, .inode = 1, .mode = S_IFREG};
	unsigned char digest[DIGEST_LENGTH] = {0};
	struct rusage before, after;
	(void)state;
	digest_keep(&version, digest); /* allocates the table */
	getrusage(RUSAGE_SELF, &before);
	for (; version.inode <= FILES; version.inode++) {
		digest[0] = (unsigned char)version.inode;
		digest_keep(&version, digest);
	}
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_minflt - before.ru_minflt, 0, PAGES);
	for (version.inode = 1; version.inode <= FILES; version.inode++) {
		assert_true(digest_find(&version, digest));
		assert_int_equal(digest[0], version.inode % 256);
	}
}

int main(void) {
	for (size_t i = 0; i < sizeof text; i++) text[i] = (char)i;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_murmurhash3),
		cmocka_unit_test(a_file_has_the_hash_of_its_bytes),
		cmocka_unit_test(the_hashes_of_files_made_together_share_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
