/* test_content_hash.c - the hash of content is the same on every machine. */
#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gatling/files/content_hash.h"
#include "io/task.h"

static char text[3 * CONTENT_HASH_PIECE];

static void check_digest(const unsigned char *content_hash, const char *expected) {
	char hex[2 * CONTENT_HASH_LENGTH + 1];
	for (int i = 0; i < CONTENT_HASH_LENGTH; i++) snprintf(hex + 2 * i, 3, "%02x", content_hash[i]);
	assert_string_equal(hex, expected);
}

/* Expected values are those of mmh3.hash64() in Python. */
static void it_is_murmurhash3(void **state) {
	static const struct {
		size_t length;
		const char *content_hash;
	} cases[] = {{0, "00000000000000000000000000000000"},  {1, "4610abe56eff5cb551622daa78f83583"},
				 {7, "bd4c6987ca4b0d68613addd4bd25c787"},  {8, "47a7e1bdd68e2fc860e6ee02ec31dcc7"},
				 {9, "fbb4cb0f6e812d3278de751d0200ffb9"},  {15, "47231598fd4925e9cd846dee88c67de9"},
				 {16, "444924b591903f30ab906456762fe845"}, {17, "5c76f40f9fe7c20ec15f026b9edaa824"},
				 {31, "053dd3e1a32cd0949ee59aefb4005490"}, {32, "c66d9022b62f500f1c050a6e34c31151"},
				 {33, "7d41281bfaba461255ac8073a7d6a30b"}, {700, "70adc1c2f2971bafd22cfa96e13ddf31"}};
	const char fox[] = "The quick brown fox jumps over the lazy dog";
	unsigned char content_hash[CONTENT_HASH_LENGTH];
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *copy = malloc(cases[i].length + 1); /* of exact size, so that a sanitizer sees reads beyond the end */
		assert_non_null(copy);
		memcpy(copy, text, cases[i].length);
		content_hash_memory(copy, cases[i].length, content_hash);
		check_digest(content_hash, cases[i].content_hash);
		free(copy);
	}
	content_hash_memory(fox, sizeof fox - 1, content_hash);
	check_digest(content_hash, "e34bbc7bbc071b6c7a433ca9c49a9347");
}

static void a_file_has_the_hash_of_its_bytes(void **state) {
	const size_t sizes[] = {0, 1, CONTENT_HASH_PIECE - 1, CONTENT_HASH_PIECE, CONTENT_HASH_PIECE + 1, sizeof text};
	const atomic_bool stop = false, ends = true;
	unsigned char content_hash[CONTENT_HASH_LENGTH], expected[CONTENT_HASH_LENGTH];
	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		char path[] = "/tmp/gatling-test-XXXXXX";
		int file = mkstemp(path);
		assert_true(file != -1 && unlink(path) == 0);
		assert_int_equal(write(file, text, sizes[i]), sizes[i]);
		content_hash_memory(text, sizes[i], expected);
		assert_int_equal(content_hash_compute(file, sizes[i], &stop, content_hash), 0);
		assert_memory_equal(content_hash, expected, CONTENT_HASH_LENGTH);
		assert_int_not_equal(content_hash_compute(file, sizes[i] + 1, &stop, content_hash), 0);
		if (sizes[i]) assert_int_not_equal(content_hash_compute(file, sizes[i], &ends, content_hash), 0);
		close(file);
	}
}

/* --- large files --- */

enum { LARGE = 2 * CONTENT_HASH_SLICE + 1000 };

static const atomic_bool go = false, stopped = true;

/* Returns an open file of that many zeros, which no one has written to lately as far as its times tell. */
static int large_file(uint64_t size) {
	char path[] = "/tmp/gatling-test-XXXXXX";
	int file = mkstemp(path);
	assert_true(file != -1 && unlink(path) == 0 && ftruncate(file, (off_t)size) == 0);
	return file;
}

static void age(void) {
	struct stat st;
	int file = large_file(1);
	assert_int_equal(fstat(file, &st), 0);
	struct file_version version = file_version_of(&st);
	while (file_version_recent(&version)) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	close(file);
}

static void expect_zeros(uint64_t size, const unsigned char *content_hash) {
	unsigned char expected[CONTENT_HASH_LENGTH];
	char *zeros = calloc(1, size);
	assert_non_null(zeros);
	content_hash_memory(zeros, size, expected);
	assert_memory_equal(content_hash, expected, CONTENT_HASH_LENGTH);
	free(zeros);
}

static void a_large_file_is_hashed_slice_by_slice_by_all_who_want_it(void **state) {
	(void)state;
	struct content_hash_state *one = NULL, *two = NULL, *other = NULL;
	unsigned char content_hash[CONTENT_HASH_LENGTH] = {0};
	int file = large_file(LARGE), different = large_file(LARGE + 1);
	age();
	assert_int_equal(content_hash_slice(&one, file, LARGE, &stopped, content_hash), ECANCELED);
	assert_int_equal(content_hash_slice(&one, file, LARGE, &go, content_hash), EINPROGRESS);
	assert_int_equal(content_hash_slice(&other, different, LARGE + 1, &go, content_hash), EINPROGRESS);
	assert_int_equal(content_hash_slice(&two, file, LARGE, &go, content_hash), EINPROGRESS);
	content_hash_leave(one);
	assert_int_equal(content_hash_slice(&two, file, LARGE, &go, content_hash), 0); /* the third slice */
	expect_zeros(LARGE, content_hash);
	one = NULL;
	memset(content_hash, 0, sizeof content_hash);
	assert_int_equal(content_hash_slice(&one, file, LARGE, &go, content_hash), 0); /* it is known */
	assert_null(one);
	expect_zeros(LARGE, content_hash);
	content_hash_leave(two);
	content_hash_leave(other);
	close(file);
	close(different);
}

static void a_file_that_changes_between_two_slices_has_no_hash(void **state) {
	(void)state;
	struct content_hash_state *s = NULL;
	unsigned char content_hash[CONTENT_HASH_LENGTH];
	int file = large_file(LARGE);
	assert_int_equal(content_hash_slice(&s, file, LARGE, &go, content_hash), EINPROGRESS);
	assert_int_equal(pwrite(file, "x", 1, 0), 1);
	assert_int_equal(content_hash_slice(&s, file, LARGE, &go, content_hash), ESTALE);
	content_hash_leave(s);
	close(file);
}

static atomic_int slices;

static void *hash_all(void *file) {
	struct content_hash_state *s = NULL;
	unsigned char content_hash[CONTENT_HASH_LENGTH];
	while (content_hash_slice(&s, *(int *)file, LARGE, &go, content_hash) == EINPROGRESS) atomic_fetch_add(&slices, 1);
	content_hash_leave(s);
	return NULL;
}

static void a_large_file_is_read_when_no_client_waits_for_a_read(void **state) {
	(void)state;
	pthread_t thread;
	int file = large_file(LARGE);
	io_read_begins();
	assert_int_equal(pthread_create(&thread, NULL, hash_all, &file), 0);
	for (int i = 0; i < 15; i++) { /* others begin and end, for longer than IO_READS_STUCK_MS */
		io_read_begins();
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		io_read_ends();
	}
	assert_int_equal(atomic_load(&slices), 0);
	io_read_ends();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&slices), 2);
	close(file);
}

static void a_read_that_never_ends_holds_up_each_slice_for_a_second(void **state) {
	(void)state;
	int file = large_file(LARGE);
	io_read_begins();
	(void)hash_all(&file);
	io_read_ends();
	close(file);
}

/* A server that has read all files of a site does not use more memory for their hashes than necessary. */
static void the_hashes_of_files_made_together_share_pages(void **state) {
	enum { FILES = 4096, PAGES = 16 * FILES * 24 / 4096 }; /* with what the sanitizers touch beside them */
	struct file_version version = {.device = 1, .inode = 1, .mode = S_IFREG};
	unsigned char content_hash[CONTENT_HASH_LENGTH] = {0};
	struct rusage before, after;
	(void)state;
	content_hash_keep(&version, content_hash); /* allocates the table */
	getrusage(RUSAGE_SELF, &before);
	for (; version.inode <= FILES; version.inode++) {
		content_hash[0] = (unsigned char)version.inode;
		content_hash_keep(&version, content_hash);
	}
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_minflt - before.ru_minflt, 0, PAGES);
	for (version.inode = 1; version.inode <= FILES; version.inode++) {
		assert_true(content_hash_find(&version, content_hash));
		assert_int_equal(content_hash[0], version.inode % 256);
	}
}

int main(void) {
	for (size_t i = 0; i < sizeof text; i++) text[i] = (char)i;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_murmurhash3),
		cmocka_unit_test(a_file_has_the_hash_of_its_bytes),
		cmocka_unit_test(a_large_file_is_hashed_slice_by_slice_by_all_who_want_it),
		cmocka_unit_test(a_file_that_changes_between_two_slices_has_no_hash),
		cmocka_unit_test(a_large_file_is_read_when_no_client_waits_for_a_read),
		cmocka_unit_test(a_read_that_never_ends_holds_up_each_slice_for_a_second),
		cmocka_unit_test(the_hashes_of_files_made_together_share_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
