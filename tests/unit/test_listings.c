/* test_listings.c - listings are made beside the loop, shared, and kept for a second after they are complete. */
#include "gatling/site/listing/listing_cache.h"
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
static struct listing_cache *listings;
static int64_t now_ms;

static int set_up(void **state) {
	(void)state;
	umask(0);
	strcpy(root_path, "/tmp/gatling-test-XXXXXX");
	if (!mkdtemp(root_path)) return -1;
	chmod(root_path, 0755);
	tree.docroot.root = open(root_path, O_RDONLY | O_DIRECTORY);
	now_ms = 1000;
	loop = io_loop_new();
	jobs = jobs_new(loop, 0, 1);
	listings = listing_cache_new(&tree, jobs, &now_ms, 1);
	return tree.docroot.root == -1 || !listings;
}

static int tear_down(void **state) {
	(void)state;
	char command[64];
	jobs_free(jobs);
	listing_cache_free(listings);
	io_loop_free(loop);
	close(tree.docroot.root);
	snprintf(command, sizeof command, "rm -r %s", root_path);
	return system(command); // NOLINT(cert-env33-c)
}

static struct listing_request wanted_of(const char *path) {
	return (struct listing_request){.path = path, .title = slice_of("d/")};
}

static struct listing_result find(const char *path) {
	struct listing_result found = {0};
	struct listing_request wanted = wanted_of(path);
	assert_int_equal(listing_cache_find(listings, &wanted, true, &found), 0);
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
	now_ms += 10 * LISTING_CACHE_KEPT_MS; /* it took this long */
	wait_for_all();
	struct listing_result found = find(".");
	assert_null(found.job);
	assert_true(found.length > 0);
	listing_reader_free(found.reader);
	now_ms += LISTING_CACHE_KEPT_MS;
	assert_non_null(find(".").job);
	wait_for_all();
}

static void who_asks_at_the_same_time_waits_for_the_same(void **state) {
	(void)state;
	struct listing_result impatient;
	struct listing_request wanted = wanted_of(".");
	struct job *job = find(".").job;
	assert_ptr_equal(find(".").job, job);
	assert_int_equal(listing_cache_find(listings, &wanted, false, &impatient), EBUSY);
	wait_for_all();
}

static void what_cannot_be_listed_is_believed_too(void **state) {
	(void)state;
	struct listing_result found;
	struct listing_request wanted = wanted_of("none");
	assert_non_null(find("none").job);
	wait_for_all();
	assert_int_equal(listing_cache_find(listings, &wanted, true, &found), ENOENT);
}

static void forget(struct waiter *waiter) { (void)waiter; }

/* Errors such as EMFILE and ENOMEM are temporary, and not kept for a second. */
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
	struct listing_result found;
	struct listing_request wanted = wanted_of(".");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(listing_cache_find(listings, &wanted, true, &found), 0);
	wait_for_all();
	found = find(".");
	assert_null(found.job);
	listing_reader_free(found.reader);
}

static void any_number_of_directories_can_be_listed_in_a_second(void **state) {
	(void)state;
	for (int i = 0; i < 4 * LISTING_CACHE_KEPT; i++) {
		char name[16];
		snprintf(name, sizeof name, "d%d", i);
		assert_int_equal(mkdirat(tree.docroot.root, name, 0755), 0);
		assert_non_null(find(name).job);
		wait_for_all();
		struct listing_result found = find(name);
		assert_null(found.job);
		listing_reader_free(found.reader);
	}
}

static void one_that_nobody_waits_for_is_begun_anew(void **state) {
	(void)state;
	struct waiter waiter = {.resume = forget};
	struct listing_result found = find(".");
	job_wait(found.job, &waiter);
	waiter_leave(&waiter);
	wait_for_all();
	found = find(".");
	if (!found.job) listing_reader_free(found.reader); /* it had begun earlier */
	wait_for_all();
	found = find(".");
	assert_null(found.job);
	listing_reader_free(found.reader);
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
