/* test_remote_found.c - what threads find out of files on other machines. */
#include "gatling/files/remote_found.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/check.h"

static char root_path[] = "/tmp/gatling-found-XXXXXX";
static struct docroot docroot;

static int set_up(void **state) {
	(void)state;
	if (!mkdtemp(root_path)) return 1;
	docroot.root = open(root_path, O_RDONLY | O_DIRECTORY);
	return docroot.root == -1;
}

static int tear_down(void **state) {
	(void)state;
	char command[sizeof root_path + 8];
	snprintf(command, sizeof command, "rm -r %s", root_path);
	close(docroot.root);
	return system(command); // NOLINT(cert-env33-c): the path is ours
}

static void write_file(const char *name, size_t size) {
	int fd = openat(docroot.root, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_int_not_equal(fd, -1);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(futimens(fd, (struct timespec[2]){{0}, {0}}), 0);
	close(fd);
}

static atomic_uint steps;

static struct remote_found search(const char *path, unsigned what) {
	static atomic_bool stop;
	const struct remote_search s = {.docroot = &docroot, .path = path, .what = what, .steps = &steps, .stop = &stop};
	struct remote_found found;
	remote_found_search(&s, &found);
	return found;
}

static void end(struct remote_found *found) {
	if (found->fd != -1) close(found->fd);
	remote_found_free(found);
}

/* Returns the names of a directory, when it has not changed for FILE_VERSION_RECENT_S. */
static struct remote_found search_settled(const char *path) {
	struct remote_found found = search(path, REMOTE_NAMES);
	for (int i = 0; found.names_error == EAGAIN && i < 100; i++) {
		end(&found);
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		found = search(path, REMOTE_NAMES);
	}
	return found;
}

static bool lacks(const struct remote_found *found, const char *name) {
	return remote_found_lacks(found, slice_of(name));
}

static void a_name_is_there_in_whatever_case(void **state) {
	(void)state;
	assert_int_equal(mkdirat(docroot.root, "names", 0755), 0);
	write_file("names/.HTaccess", 0);
	write_file("names/a.js.gz", 0);
	struct remote_found f = search_settled("names");
	assert_true(!f.error && !f.names_error);
	assert_false(lacks(&f, ".htaccess") || lacks(&f, ".HTACCESS") || lacks(&f, "a.js.gz") || lacks(&f, "A.JS.GZ"));
	assert_true(lacks(&f, ".htacces") && lacks(&f, "htaccess") && lacks(&f, "a.js") && lacks(&f, "js.gz"));
	assert_false(lacks(&f, "\xc3\xa4")); /* it may be listed in another form */
	end(&f);
}

static void of_too_many_names_nothing_is_known(void **state) {
	(void)state;
	char name[32];
	assert_int_equal(mkdirat(docroot.root, "many", 0755), 0);
	for (int i = 0; i < REMOTE_NAMES_MAX - 2; i++) { /* with . and .. these are all */
		snprintf(name, sizeof name, "many/%d", i);
		write_file(name, 0);
	}
	struct remote_found f = search_settled("many");
	assert_true(!f.names_error && lacks(&f, "none"));
	end(&f);
	write_file("many/more", 0);
	f = search_settled("many");
	assert_true(f.names_error == E2BIG && !lacks(&f, "none"));
	end(&f);
}

static void of_a_file_as_much_is_read_as_is_wanted(void **state) {
	(void)state;
	static const struct {
		size_t size;
		unsigned what;
		int error;
		size_t length;
		bool open;
	} wanted[] = {{0, REMOTE_OPENED, 0, 0, false},
				  {REMOTE_START, REMOTE_OPENED, 0, REMOTE_START, false},
				  {REMOTE_START + 1, REMOTE_OPENED, 0, REMOTE_START, true},
				  {REMOTE_START + 1, REMOTE_READ, 0, REMOTE_START + 1, false},
				  {REMOTE_WHOLE, REMOTE_OPENED | REMOTE_READ, 0, REMOTE_WHOLE, true},
				  {REMOTE_WHOLE + 1, REMOTE_READ, EFBIG, 0, false}};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		write_file("file", wanted[i].size);
		struct remote_found f = search("file", wanted[i].what);
		assert_true(!f.error && f.content_error == wanted[i].error && (f.fd != -1) == wanted[i].open);
		if (!f.content_error) assert_true(f.start && f.length == wanted[i].length && !f.start[f.length]);
		end(&f);
	}
}

static void a_symlink_is_followed_and_its_holder_looked_at(void **state) {
	(void)state;
	assert_int_equal(mkdirat(docroot.root, "holder", 0750), 0);
	write_file("target", 3);
	assert_int_equal(symlinkat("../target", docroot.root, "holder/link"), 0);
	assert_int_equal(symlinkat("nowhere", docroot.root, "holder/dangling"), 0);
	struct remote_found f = search("holder/link", REMOTE_HOLDER);
	assert_true(!f.error && S_ISLNK(f.link.st_mode) && !f.target_error && f.target.st_size == 3);
	assert_int_equal(f.leads_to_error, 0);
	assert_string_equal(f.leads_to, "../target");
	assert_true(!f.holder_error && (f.holder.st_mode & 0777) == 0750);
	end(&f);
	f = search("holder/dangling", REMOTE_OPENED);
	assert_true(!f.error && f.target_error == ENOENT && f.fd == -1);
	end(&f);
	f = search("target", 0);
	assert_true(!f.error && f.leads_to_error == EINVAL && !f.leads_to);
	end(&f);
}

static void what_is_no_file_is_not_opened(void **state) {
	(void)state;
	assert_int_equal(mkfifoat(docroot.root, "fifo", 0644), 0);
	struct remote_found f = search("fifo", REMOTE_OPENED);
	assert_int_equal(f.content_error, EINVAL);
	end(&f);
	f = search(".", REMOTE_OPENED);
	assert_int_equal(f.content_error, EINVAL);
	end(&f);
	f = search("none/none", REMOTE_OPENED | REMOTE_HOLDER);
	assert_int_equal(f.error, ENOENT);
	end(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_there_in_whatever_case),
		cmocka_unit_test(of_too_many_names_nothing_is_known),
		cmocka_unit_test(of_a_file_as_much_is_read_as_is_wanted),
		cmocka_unit_test(a_symlink_is_followed_and_its_holder_looked_at),
		cmocka_unit_test(what_is_no_file_is_not_opened),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
