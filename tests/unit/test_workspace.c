/* test_workspace.c - each place has its own memory in each thread, and keeps it. */
#include "tests/unit/check.h"

#include <pthread.h>

#include "gatling/base/workspace.h"

static char *first(void) { return WORKSPACE(1000); }
static char *second(void) { return WORKSPACE(WORKSPACE_MAX / 2); }

static void a_place_keeps_its_memory(void **state) {
	(void)state;
	char *one = first(), *other = second();
	memset(one, 1, 1000);
	memset(other, 2, WORKSPACE_MAX / 2);
	assert_ptr_equal(first(), one);
	assert_ptr_equal(second(), other);
	for (int i = 0; i < 1000; i++) assert_int_equal(one[i], 1);
	assert_int_equal((uintptr_t)one % sizeof(max_align_t), 0);
	assert_int_equal((uintptr_t)other % sizeof(max_align_t), 0);
}

static void *run(void *mine) {
	assert_int_equal(workspace_open(), 0);
	assert_int_equal(workspace_open(), 0);
	assert_ptr_not_equal(first(), mine);
	assert_int_equal(*first(), 0);
	return NULL;
}

static void a_thread_has_its_own(void **state) {
	pthread_t thread;
	(void)state;
	memset(first(), 1, 1000);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(pthread_create(&thread, NULL, run, first()), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_int_equal(*first(), 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_keeps_its_memory),
		cmocka_unit_test(a_thread_has_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
