/* test_text_file.c - files that configure a site: when they are read, and what is kept of them. */
#include "gatling/site/rules/text_file.h"
#include "gatling/base/lines.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct tree tree;
static char root_path[] = "/tmp/gatling-test-XXXXXX";
static struct text_file file;

static void write_file(const char *text) {
	int fd = openat(tree.docroot.root, "f", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_not_equal(fd, -1);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int set_up(void **state) {
	(void)state;
	strcpy(root_path, "/tmp/gatling-test-XXXXXX");
	if (!mkdtemp(root_path)) return -1;
	tree.docroot.root = open(root_path, O_RDONLY | O_DIRECTORY);
	file = (struct text_file){0};
	return tree.docroot.root == -1;
}

static int tear_down(void **state) {
	(void)state;
	char command[64];
	close(tree.docroot.root);
	snprintf(command, sizeof command, "rm -r %s", root_path);
	return system(command); // NOLINT(cert-env33-c)
}

static void check_look(enum text_state wanted, const char *content) {
	char *text;
	size_t length;
	enum text_state state = text_file_look(&file, &tree, "f", &text, &length);
	if (state != wanted) fail_msg("state %d, not %d (%s)", state, wanted, strerror(file.error));
	assert_int_equal(!text, !content);
	if (content) check_slice((struct slice){.at = text, .length = length}, content);
	free(text);
}

static void it_is_read_when_it_has_changed(void **state) {
	(void)state;
	check_look(TEXT_NONE, NULL);
	check_look(TEXT_SAME, NULL);
	write_file("one");
	check_look(TEXT_NEW, "one");
	sleep(3); /* by the file system's clock, the change is no longer recent */
	check_look(TEXT_NEW, "one");
	check_look(TEXT_SAME, NULL);
	write_file("two");
	check_look(TEXT_NEW, "two");
	assert_int_equal(unlinkat(tree.docroot.root, "f", 0), 0);
	check_look(TEXT_NONE, NULL);
	check_look(TEXT_SAME, NULL);
}

static void what_cannot_be_read_is_said_once(void **state) {
	(void)state;
	assert_int_equal(mkdirat(tree.docroot.root, "f", 0755), 0);
	check_look(TEXT_FAILED, NULL);
	assert_int_equal(file.error, EINVAL);
	check_look(TEXT_SAME, NULL);
	assert_int_equal(unlinkat(tree.docroot.root, "f", AT_REMOVEDIR), 0);
	write_file("");
	int fd = openat(tree.docroot.root, "f", O_WRONLY);
	assert_int_equal(ftruncate(fd, LINES_TEXT_MAX + 1), 0);
	close(fd);
	check_look(TEXT_FAILED, NULL);
	assert_int_equal(file.error, EFBIG);
	check_look(TEXT_SAME, NULL);
	assert_int_equal(unlinkat(tree.docroot.root, "f", 0), 0);
	assert_int_equal(symlinkat("f", tree.docroot.root, "f"), 0);
	check_look(TEXT_FAILED, NULL);
	assert_int_equal(file.error, ELOOP);
}

static void what_passes_is_tried_again(void **state) {
	(void)state;
	struct rlimit limit, none;
	write_file("one");
	sleep(3);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	check_look(TEXT_FAILED, NULL);
	assert_int_equal(file.error, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_look(TEXT_NEW, "one");
}

static void check_good(const char *path, const char *content) {
	size_t length;
	char *text = text_file_last_good(path, &length);
	assert_int_equal(!text, !content);
	if (content) check_slice((struct slice){.at = text, .length = length}, content);
	free(text);
}

static void what_was_good_last_is_kept_for_all(void **state) {
	(void)state;
	check_good("a/_headers", NULL);
	text_file_good("a/_headers", "one", 3);
	text_file_good("b/_headers", "other", 5);
	check_good("a/_headers", "one");
	text_file_good("a/_headers", "two!", 4);
	check_good("a/_headers", "two!");
	text_file_good("a/_headers", NULL, 0);
	check_good("a/_headers", NULL);
	check_good("b/_headers", "other");
	text_file_good("b/_headers", NULL, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(it_is_read_when_it_has_changed),
		TEST(what_cannot_be_read_is_said_once),
		TEST(what_passes_is_tried_again),
		TEST(what_was_good_last_is_kept_for_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
