/* test_listings.c - listings are made beside the loop, shared, and believed for a second from when they are there. */
#include "gatling/listings.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tree tree;
static char root_path[] = "/tmp/gatling-test-XXXXXX";
static io_loop *loop;
static struct jobs *jobs;
static struct listings *listings;
static int64_t now_ms;

static int set_up(void **state) {
	(void)state;
	umask(0);
	strcpy(root_path, "/tmp/gatling-test-XXXXXX");
	if (!mkdtemp(root_path)) return -1;
	chmod(root_path, 0755);
	tree.root = open(root_path, O_RDONLY | O_DIRECTORY);
	now_ms = 1000;
	loop = io_loop_new();
	jobs = jobs_new(loop);
	listings = listings_new(&tree, jobs, &now_ms);
	return tree.root == -1 || !listings;
}

static int tear_down(void **state) {
	(void)state;
	char command[64];
	jobs_free(jobs);
	listings_free(listings);
	io_loop_free(loop);
	close(tree.root);
	snprintf(command, sizeof command, "rm -r %s", root_path);
	return system(command); // NOLINT(cert-env33-c)
}

static struct listing_wanted wanted_of(const char *path) {
	return (struct listing_wanted){.path = path, .title = slice_of("d/")};
}

static struct listings_found find(const char *path) {
	struct listings_found found = {0};
	struct listing_wanted wanted = wanted_of(path);
	assert_int_equal(listings_find(listings, &wanted, true, &found), 0);
	return found;
}

static void wait_for_all(void) {
	while (jobs_count(jobs)) {
		assert_int_equal(io_wait(loop, 10000), 0);
		jobs_collect(jobs);
	}
}

static void one_that_took_long_is_good_when_it_is_there(void **state) {
	(void)state;
	assert_non_null(find(".").job);
	now_ms += 10 * LISTINGS_KEPT_MS; /* so long it took */
	wait_for_all();
	struct listings_found found = find(".");
	assert_null(found.job);
	assert_true(found.length > 0);
	listings_reader_free(found.reader);
	now_ms += LISTINGS_KEPT_MS;
	assert_non_null(find(".").job);
	wait_for_all();
}

static void who_asks_at_the_same_time_waits_for_the_same(void **state) {
	(void)state;
	struct listings_found impatient;
	struct listing_wanted wanted = wanted_of(".");
	struct job *job = find(".").job;
	assert_ptr_equal(find(".").job, job);
	assert_int_equal(listings_find(listings, &wanted, false, &impatient), EBUSY);
	wait_for_all();
}

static void what_cannot_be_listed_is_believed_too(void **state) {
	(void)state;
	struct listings_found found;
	struct listing_wanted wanted = wanted_of("none");
	assert_non_null(find("none").job);
	wait_for_all();
	assert_int_equal(listings_find(listings, &wanted, true, &found), ENOENT);
}

static void forget(struct waiter *waiter) { (void)waiter; }

/* errno EMFILE, as ENOMEM, is of the moment: that is not believed for a second. */
static void what_failed_for_want_of_means_is_tried_again(void **state) {
	(void)state;
	struct rlimit limit, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	struct job *job = find(".").job;
	assert_non_null(job);
	struct waiter waiter = {.resume = forget};
	job_wait(job, &waiter);
	while (jobs_count(jobs)) jobs_collect(jobs);
	waiter_leave(&waiter);
	struct listings_found found;
	struct listing_wanted wanted = wanted_of(".");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(listings_find(listings, &wanted, true, &found), 0);
	wait_for_all();
	found = find(".");
	assert_null(found.job);
	listings_reader_free(found.reader);
}

static void any_number_of_directories_can_be_listed_in_a_second(void **state) {
	(void)state;
	for (int i = 0; i < 4 * LISTINGS_KEPT; i++) {
		char name[16];
		snprintf(name, sizeof name, "d%d", i);
		assert_int_equal(mkdirat(tree.root, name, 0755), 0);
		assert_non_null(find(name).job);
		wait_for_all();
		struct listings_found found = find(name);
		assert_null(found.job);
		listings_reader_free(found.reader);
	}
}

static void one_that_nobody_waits_for_is_begun_anew(void **state) {
	(void)state;
	struct waiter waiter = {.resume = forget};
	struct listings_found found = find(".");
	job_wait(found.job, &waiter);
	waiter_leave(&waiter);
	wait_for_all();
	found = find(".");
	if (!found.job) listings_reader_free(found.reader); /* it had begun before */
	wait_for_all();
	found = find(".");
	assert_null(found.job);
	listings_reader_free(found.reader);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(one_that_took_long_is_good_when_it_is_there),
		TEST(who_asks_at_the_same_time_waits_for_the_same),
		TEST(what_cannot_be_listed_is_believed_too),
		TEST(what_failed_for_want_of_means_is_tried_again),
		TEST(any_number_of_directories_can_be_listed_in_a_second),
		TEST(one_that_nobody_waits_for_is_begun_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
