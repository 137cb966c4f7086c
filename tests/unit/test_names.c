/* test_names.c - names that are known to be missing: never those that exist. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "gatling/base/file_version.h"
#include "gatling/base/slice.h"
#include "gatling/base/platform.h"
#include "gatling/files/names.h"

static char directory[64];
static struct tree tree;
static struct names *names;
static int64_t now_ns;

enum { WORKERS = 64 };

/* Waits until past changes can be told from the next one. */
static void settle(void) { usleep((FILE_VERSION_SETTLES_MS + 20) * 1000); }

static void put(const char *path) {
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

static int open_root(void **state) {
	(void)state;
	snprintf(directory, sizeof directory, "/tmp/gatling-names-XXXXXX");
	if (!mkdtemp(directory) || chdir(directory) == -1) return -1;
	tree.docroot.root = open(".", O_RDONLY | O_DIRECTORY);
	if (!platform_lists_all_names(tree.docroot.root)) {
		print_message("skipped: the names of this file system are not read\n");
		exit(0);
	}
	put("here.txt");
	if (mkdir("sub", 0755) == -1 || symlink("sub", "link") == -1 || symlink("nowhere", "dangling") == -1) return -1;
	put("sub/below.txt");
	names = names_new(&tree, &now_ns, WORKERS);
	settle();
	return names ? 0 : -1;
}

static int close_root(void **state) {
	char command[128];
	(void)state;
	names_free(names);
	close(tree.docroot.root);
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	return chdir("/") == -1 || system(command) != 0 ? -1 : 0; /* NOLINT(cert-env33-c): a path of our own */
}

static bool lacks_now(const char *path) {
	now_ns++;
	return names_lack(names, slice_of(path));
}

/* Asks until it pays to read the directory. */
static bool lacks(const char *path) {
	bool lacking = false;
	for (int i = 0; i < NAMES_MAX / NAMES_A_QUESTION && !lacking; i++) lacking = lacks_now(path);
	return lacking;
}

static void what_is_missing_is_known_and_what_is_there_is_not(void **state) {
	(void)state;
	const char *const missing[] = {"no.txt", "here.tx", "sub/no",        "link/no",       "sub/no/deeper", "no/no/no",
								   "no/",    "sub/no/", "here.txt.html", "sub/.htaccess", "here.txt/no"};
	const char *const there[] = {"here.txt", "sub", "sub/", "link", "dangling", "sub/below.txt", "link/below.txt"};
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) assert_true(lacks(missing[i]));
	for (size_t i = 0; i < sizeof there / sizeof *there; i++) assert_false(lacks(there[i]));
	/* left to the file system */
	assert_false(lacks("\xc3\xa4.txt"));
	assert_false(lacks(""));
	assert_false(names_lack(NULL, SLICE("no.txt")));
}

static void files_in_other_codings_are_known_in_one_look(void **state) {
	(void)state;
	put("page.html");
	put("page.html.gz");
	put("alone.br");
	settle();
	assert_true(lacks("no.txt"));
	assert_true(names_lack_coded(names, SLICE("here.txt")));
	assert_false(names_lack_coded(names, SLICE("page.html")));
	assert_true(names_lack(names, SLICE("alone")));
	assert_false(names_lack_coded(names, SLICE("alone")));
	assert_int_equal(names_tell(names, SLICE("here.txt")).what, NAMES_ITSELF | NAMES_REGULAR);
	assert_int_equal(names_tell(names, SLICE("page.html")).what, NAMES_ITSELF | NAMES_REGULAR | NAMES_CODED);
	assert_int_equal(names_tell(names, SLICE("alone")).what, NAMES_CODED);
	assert_int_equal(names_tell(names, SLICE("alone.b")).what, 0);
	assert_int_equal(names_tell(names, SLICE("page")).what, 0);
	assert_int_equal(names_tell(names, SLICE("nowhere/page")).what, 0);
	assert_int_equal(names_tell(names, SLICE("sub/below.txt")).what, NAMES_UNTOLD); /* not read yet */
}

static bool regular_now(const char *path) {
	now_ns++;
	(void)names_lack(names, slice_of(path));
	return names_tell(names, slice_of(path)).what & NAMES_REGULAR;
}

static void regular_files_are_told_from_others(void **state) {
	(void)state;
	assert_int_equal(mkfifo("fifo", 0644), 0);
	settle();
	assert_false(regular_now("unknown.txt"));
	assert_true(lacks("no.txt"));
	assert_true(lacks("sub/no.txt"));
	assert_true(regular_now("here.txt"));
	assert_true(regular_now("sub/below.txt"));
	const char *const others[] = {"sub", "link", "dangling", "fifo", "no.txt", "here", "sub/no.txt"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_false(regular_now(others[i]));
		const bool is_directory = names_tell(names, slice_of(others[i])).what & NAMES_DIRECTORY;
		assert_int_equal(is_directory, strcmp(others[i], "sub") == 0);
	}
	assert_int_equal(rename("sub", "moved"), 0);
	assert_false(regular_now("sub"));
	assert_int_equal(names_tell(names, SLICE("sub")).what & NAMES_DIRECTORY, 0);
	assert_int_equal(unlink("here.txt"), 0);
	assert_int_equal(mkfifo("here.txt", 0644), 0);
	assert_false(regular_now("here.txt"));
}

static void what_is_new_is_found_at_once(void **state) {
	(void)state;
	assert_true(lacks("new.txt"));
	put("new.txt");
	assert_false(lacks_now("new.txt"));
	assert_false(lacks("other.txt")); /* the directory may change again within this tick */
	settle();
	assert_false(lacks("new.txt"));
	assert_true(lacks("other.txt"));
	assert_int_equal(unlink("new.txt"), 0);
	settle();
	assert_true(lacks("new.txt"));
}

static struct file_version version_at(const char *path) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return file_version_of(&st);
}

/* Returns whether what was last read about a path still applies to that file. */
static bool told_lately(const char *path, const struct file_version *file) {
	const struct names_told told = names_tell(names, slice_of(path));
	assert_int_equal(told.what, NAMES_ITSELF | NAMES_REGULAR | NAMES_LATELY);
	return names_told_of(names, slice_of(path), &told, file);
}

static void what_is_there_is_taken_from_the_last_look(void **state) {
	const unsigned there = NAMES_ITSELF | NAMES_REGULAR;
	const struct file_version here = version_at("here.txt");
	(void)state;
	assert_true(lacks("later.txt"));
	assert_int_equal(names_tell(names, SLICE("here.txt")).what, there);
	put("later.txt");
	now_ns += 1000000;
	assert_true(told_lately("here.txt", &here));
	assert_true(names_lacked_lately(names, SLICE("later.txt")));
	assert_int_not_equal(names_tell(names, SLICE("later.txt")).what, 0); /* missing names are looked up again */
	assert_false(names_lacked_lately(names, SLICE("later.txt")));
	settle();
	assert_true(lacks("no.txt"));
	assert_int_equal(unlink("later.txt"), 0);
	now_ns += NAMES_LATELY_MS * INT64_C(1000000);
	assert_int_equal(names_tell(names, SLICE("later.txt")).what & NAMES_REGULAR, 0);
}

static void another_file_in_its_place_is_not_taken_for_it(void **state) {
	(void)state;
	assert_int_equal(mkdir("sub2", 0755), 0);
	put("sub2/below.txt");
	put("sub2/guard");
	settle();
	assert_true(lacks("link/guard"));
	assert_int_equal(unlink("link") + symlink("sub2", "link"), 0);
	now_ns += 1000000;
	const struct file_version other = version_at("link/below.txt");
	assert_true(names_lacked_lately(names, SLICE("link/guard")));
	assert_false(told_lately("link/below.txt", &other));
	assert_false(names_lacked_lately(names, SLICE("link/guard")));
}

/* As on some overlay file systems: every file is then checked each time. */
static void a_directory_with_other_numbers_is_not_relied_on(void **state) {
	struct file_version here = version_at("here.txt");
	here.inode++;
	(void)state;
	assert_true(lacks("no.txt"));
	now_ns += 1000000;
	assert_false(told_lately("here.txt", &here));
	now_ns += 1000000;
	assert_int_equal(names_tell(names, SLICE("here.txt")).what, NAMES_ITSELF | NAMES_REGULAR);
}

static void another_directory_in_its_place_is_another(void **state) {
	(void)state;
	assert_true(lacks("link/new"));
	assert_int_equal(mkdir("sub2", 0755), 0);
	put("sub2/new");
	settle();
	assert_true(lacks("link/new"));
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(symlink("sub2", "link"), 0);
	assert_false(lacks_now("link/new"));
	settle();
	assert_false(lacks("link/new"));
}

static void a_directory_that_was_removed_is_missing(void **state) {
	(void)state;
	assert_int_equal(mkdir("old", 0755), 0);
	put("old/file");
	settle();
	assert_true(lacks("old/no"));
	assert_int_equal(unlink("old/file") + rmdir("old"), 0);
	assert_true(lacks_now("old/file"));
	assert_int_equal(mkdir("old", 0755), 0);
	put("old/file");
	assert_false(lacks_now("old/file"));
}

static void large_directories_are_not_read(void **state) {
	char path[64];
	(void)state;
	assert_int_equal(mkdir("large", 0755), 0);
	for (int i = 0; i <= NAMES_MAX; i++) {
		snprintf(path, sizeof path, "large/%d", i);
		put(path);
	}
	settle();
	for (int i = 0; i < 3; i++) assert_false(lacks("large/no"));
	for (int i = 0; i < NAMES_MAX / 2; i++) {
		snprintf(path, sizeof path, "large/%d", i);
		assert_int_equal(unlink(path), 0);
	}
	settle();
	assert_true(lacks("large/no") || lacks("large/no"));
	assert_false(lacks("large/16000"));
}

/* Makes a directory that has a file. */
static void put_directory(const char *path) {
	char file[PATH_MAX];
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(file, sizeof file, "%s/file", path);
	put(file);
}

static unsigned tell(const char *parent, const char *name) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", parent, name);
	return names_tell(names, slice_of(path)).what & ~(unsigned)NAMES_LATELY;
}

static void of_many_directories_the_last_are_remembered(void **state) {
	enum { LEAST = 450, MOST = 550 }; /* bytes for one directory, including its path */
	enum { COUNT = NAMES_BYTES_LEAST / (LEAST - 50), FORGOTTEN = COUNT - NAMES_BYTES_LEAST / LEAST };
	char path[512];
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		snprintf(path, sizeof path, "%0250d", i);
		put_directory(path);
	}
	settle();
	for (int i = 0; i < COUNT; i++) {
		snprintf(path, sizeof path, "%0250d/no", i);
		assert_true(lacks(path));
		snprintf(path, sizeof path, "%0250d/file", i);
		assert_false(lacks_now(path));
	}
	for (int i = 0; i < FORGOTTEN; i++) {
		snprintf(path, sizeof path, "%0250d", i);
		assert_int_equal(tell(path, "file"), NAMES_UNTOLD);
	}
	for (int i = COUNT - NAMES_BYTES_LEAST / MOST; i < COUNT; i++) {
		snprintf(path, sizeof path, "%0250d", i);
		assert_int_equal(tell(path, "file"), NAMES_ITSELF | NAMES_REGULAR);
	}
}

static void directories_whose_hashes_collide_are_not_searched_for_long(void **state) {
	enum { COLLIDING = 40, KEPT = 32, BUCKETS = 16 * 1024 }; /* as in names.c */
	char path[COLLIDING][16];
	(void)state;
	for (int i = 0, found = 0; found < COLLIDING; i++) {
		snprintf(path[found], sizeof path[found], "d%d", i);
		found += slice_hash(1, slice_of(path[found])) % BUCKETS == 0;
	}
	for (int i = 0; i < COLLIDING; i++) put_directory(path[i]);
	settle();
	for (int i = 0; i < COLLIDING; i++) {
		char name[32];
		snprintf(name, sizeof name, "%.15s/no", path[i]);
		assert_true(lacks(name));
	}
	for (int i = 0; i < COLLIDING; i++)
		assert_int_equal(tell(path[i], "file"), i < COLLIDING - KEPT ? NAMES_UNTOLD : NAMES_ITSELF | NAMES_REGULAR);
}

static void long_paths_take_their_part_of_the_memory(void **state) {
	enum { SEGMENT = 200, DEPTH = 18, COUNT = NAMES_BYTES_LEAST / (SEGMENT * DEPTH) };
	char path[PATH_MAX] = "";
	size_t length = 0;
	(void)state;
	for (int i = 0; i < DEPTH; i++) {
		length += (size_t)snprintf(path + length, sizeof path - length, "%s%0*d", i ? "/" : "", SEGMENT, i);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	for (int i = 0; i < COUNT; i++) {
		snprintf(path + length, sizeof path - length, "/%d", i);
		put_directory(path);
	}
	settle();
	for (int i = 0; i < COUNT; i++) {
		snprintf(path + length, sizeof path - length, "/%d/no", i);
		assert_true(lacks(path));
	}
	snprintf(path + length, sizeof path - length, "/%d", COUNT - 1);
	assert_int_equal(tell(path, "file"), NAMES_ITSELF | NAMES_REGULAR);
	snprintf(path + length, sizeof path - length, "/0");
	assert_int_equal(tell(path, "file"), NAMES_UNTOLD);
}

static void files_in_all_codings_count_once(void **state) {
	const char *const suffix[] = {"", ".gz", ".br", ".zst"};
	char path[64];
	(void)state;
	assert_int_equal(mkdir("coded", 0755), 0);
	for (int i = 0; i < NAMES_MAX - 2; i++) {
		snprintf(path, sizeof path, "coded/%d%s", i / 4, suffix[i % 4]);
		put(path);
	}
	settle();
	assert_true(lacks("coded/no"));
	assert_int_equal(tell("coded", "7"), NAMES_ITSELF | NAMES_REGULAR | NAMES_CODED);
	put("coded/one more");
	settle();
	assert_false(lacks("coded/no"));
}

static void every_name_of_a_large_directory_is_known(void **state) {
	char path[64];
	(void)state;
	assert_int_equal(mkdir("large", 0755), 0);
	for (int i = 0; i < NAMES_MAX / 4; i++) {
		snprintf(path, sizeof path, "large/%d", i);
		put(path);
	}
	settle();
	assert_true(lacks("large/no"));
	for (int i = 0; i < NAMES_MAX / 4; i++) {
		snprintf(path, sizeof path, "%d", i);
		assert_true(tell("large", path) & NAMES_ITSELF);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_missing_is_known_and_what_is_there_is_not, open_root, close_root),
		cmocka_unit_test_setup_teardown(files_in_other_codings_are_known_in_one_look, open_root, close_root),
		cmocka_unit_test_setup_teardown(regular_files_are_told_from_others, open_root, close_root),
		cmocka_unit_test_setup_teardown(what_is_new_is_found_at_once, open_root, close_root),
		cmocka_unit_test_setup_teardown(what_is_there_is_taken_from_the_last_look, open_root, close_root),
		cmocka_unit_test_setup_teardown(another_file_in_its_place_is_not_taken_for_it, open_root, close_root),
		cmocka_unit_test_setup_teardown(a_directory_with_other_numbers_is_not_relied_on, open_root, close_root),
		cmocka_unit_test_setup_teardown(another_directory_in_its_place_is_another, open_root, close_root),
		cmocka_unit_test_setup_teardown(a_directory_that_was_removed_is_missing, open_root, close_root),
		cmocka_unit_test_setup_teardown(large_directories_are_not_read, open_root, close_root),
		cmocka_unit_test_setup_teardown(of_many_directories_the_last_are_remembered, open_root, close_root),
		cmocka_unit_test_setup_teardown(directories_whose_hashes_collide_are_not_searched_for_long, open_root,
										close_root),
		cmocka_unit_test_setup_teardown(long_paths_take_their_part_of_the_memory, open_root, close_root),
		cmocka_unit_test_setup_teardown(files_in_all_codings_count_once, open_root, close_root),
		cmocka_unit_test_setup_teardown(every_name_of_a_large_directory_is_known, open_root, close_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
