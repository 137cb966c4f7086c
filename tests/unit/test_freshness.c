/* test_freshness.c - when files that the cache has loaded are looked at again. */
#include "gatling/site/cache/freshness.h"

#include "gatling/http/coding.h"
#include "tests/unit/check.h"

enum { NOW_MS = 5000, NEXT_MS = NOW_MS + CACHE_CHECK_MS };

/* Returns the version of a file that changed so many milliseconds ago. */
static struct file_version changed(int64_t ago_ms) {
	const struct timespec at = file_version_clock();
	int64_t ms = (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000 - ago_ms;
	return (struct file_version){.mode = S_IFREG, .changed = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};
}

static void files_that_did_not_just_change_are_checked_each_time(void **state) {
	(void)state;
	const struct file_version version[CODINGS] = {[CODING_GZIP] = changed(60000)};
	struct freshness f = freshness_loaded(version, file_version_clock(), false, false, NOW_MS);
	assert_true(freshness_settled(&f));
	assert_int_equal(freshness_lasts_until(&f), NEXT_MS);
	assert_int_equal(freshness_due(&f, version, NEXT_MS - 1), DUE_NOTHING);
	assert_int_equal(freshness_due(&f, version, NEXT_MS), DUE_CHECK);
	freshness_checked(&f, NEXT_MS);
	assert_int_equal(freshness_due(&f, version, NEXT_MS), DUE_NOTHING);
	assert_int_equal(freshness_due(&f, version, NEXT_MS + CACHE_CHECK_MS), DUE_CHECK);
}

static void files_whose_directory_was_not_checked_are_checked_at_once(void **state) {
	(void)state;
	const struct file_version version[CODINGS] = {changed(60000)};
	struct freshness f = freshness_loaded(version, file_version_clock(), false, true, NOW_MS);
	assert_true(freshness_settled(&f));
	assert_int_equal(freshness_lasts_until(&f), NOW_MS);
	assert_int_equal(freshness_due(&f, version, NOW_MS), DUE_CHECK);
	freshness_checked(&f, NOW_MS);
	assert_int_equal(freshness_due(&f, version, NEXT_MS - 1), DUE_NOTHING);
}

static void files_that_are_new_or_were_unreadable_are_loaded_again(void **state) {
	(void)state;
	const struct timespec now = file_version_clock();
	const struct file_version old[CODINGS] = {changed(60000)};
	const struct file_version recent[CODINGS] = {changed(60000), [CODING_GZIP] = changed(1900)};
	struct freshness unread = freshness_loaded(old, now, false, false, NOW_MS);
	freshness_unread(&unread);
	const struct freshness cases[] = {unread, freshness_loaded(old, now, true, true, NOW_MS),
									  freshness_loaded(recent, now, false, true, NOW_MS)};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_false(freshness_settled(&cases[i]));
		assert_int_equal(freshness_lasts_until(&cases[i]), NEXT_MS);
		assert_int_equal(freshness_due(&cases[i], old, NEXT_MS - 1), DUE_NOTHING);
		assert_int_equal(freshness_due(&cases[i], old, NEXT_MS), DUE_LOAD);
	}
}

static void a_file_that_may_be_in_the_middle_of_a_write_is_loaded_again_once_it_is_not(void **state) {
	(void)state;
	const struct file_version written[CODINGS] = {changed(60000), [CODING_BR] = changed(FILE_VERSION_SETTLES_MS)};
	struct file_version writing[CODINGS] = {changed(60000)};
	struct freshness f;
	enum freshness_due due;
	do {
		writing[CODING_BR] = changed(0);
		f = freshness_loaded(writing, file_version_clock(), true, true, NOW_MS);
		due = freshness_due(&f, writing, NEXT_MS - 1);
	} while (!file_version_unsettled_ms(&writing[CODING_BR])); /* that took too long */
	assert_int_equal(due, DUE_NOTHING);
	assert_int_equal(freshness_lasts_until(&f), 0);
	freshness_unread(&f);
	assert_false(freshness_settled(&f));
	assert_int_equal(freshness_due(&f, written, NOW_MS), DUE_LOAD);
	assert_int_equal(freshness_due(&f, writing, NEXT_MS), DUE_LOAD);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_did_not_just_change_are_checked_each_time),
		cmocka_unit_test(files_whose_directory_was_not_checked_are_checked_at_once),
		cmocka_unit_test(files_that_are_new_or_were_unreadable_are_loaded_again),
		cmocka_unit_test(a_file_that_may_be_in_the_middle_of_a_write_is_loaded_again_once_it_is_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
