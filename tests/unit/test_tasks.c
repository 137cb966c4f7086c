/* test_tasks.c - tasks that are withdrawn, as reads are when their descriptor is closed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/task.h"
#include "tests/unit/check.h"

enum { FEW = 2000, MANY = 64000, ROUNDS = 3, DEARER_MAX = 8 /* walking along the queue would take 32 times as long */ };

static io_loop *loop;
static atomic_int ran;
static atomic_bool held; /* the first task waits until this is false */

static void hold(struct io_task *task, const atomic_bool *stop) {
	(void)task, (void)stop;
	while (atomic_load(&held)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void count(struct io_task *task, const atomic_bool *stop) {
	(void)task, (void)stop;
	atomic_fetch_add(&ran, 1);
}

/* Returns a thread that is busy with the task first until `held` is false. */
static io_tasks *busy(struct io_task *first) {
	io_tasks *tasks = io_tasks_new(loop, 0, 1);
	assert_non_null(tasks);
	atomic_store(&held, true);
	*first = (struct io_task){.run = hold};
	assert_true(io_tasks_add(tasks, first));
	return tasks;
}

static void end(io_tasks *tasks) {
	assert_true(io_tasks_stop(tasks, -1));
	while (io_tasks_done(tasks)) {}
	io_tasks_free(tasks);
}

static void several_threads_run_tasks_side_by_side(void **state) {
	(void)state;
	struct io_task first = {.run = hold}, second = {.run = hold}, third = {.run = count};
	io_tasks *tasks = io_tasks_new(loop, 0, 3);
	atomic_store(&held, true);
	atomic_store(&ran, 0);
	assert_true(io_tasks_add(tasks, &first) && io_tasks_add(tasks, &second) && io_tasks_add(tasks, &third));
	do assert_int_equal(io_wait(loop, -1), 0);
	while (io_tasks_done(tasks) != &third);
	atomic_store(&held, false);
	end(tasks);
	assert_int_equal(atomic_load(&ran), 1);
}

static void the_end_does_not_wait_for_a_task_that_hangs(void **state) {
	(void)state;
	struct io_task first, waiting = {.run = count};
	io_tasks *tasks = busy(&first);
	while (io_tasks_withdraw(tasks, &first)) assert_true(io_tasks_add(tasks, &first));
	assert_true(io_tasks_add(tasks, &waiting));
	assert_false(io_tasks_stop(tasks, 1));
	assert_ptr_equal(io_tasks_done(tasks), &waiting);
	assert_null(io_tasks_done(tasks));
	atomic_store(&held, false);
	end(tasks);
}

/* Withdraws n tasks, the last one first. Returns the nanoseconds that each takes. */
static double withdraw_all(int n) {
	struct io_task first, *task = calloc((size_t)n, sizeof *task);
	struct timespec begun, ended;
	assert_non_null(task);
	io_tasks *tasks = busy(&first);
	for (int i = 0; i < n; i++) {
		task[i].run = count;
		assert_true(io_tasks_add(tasks, &task[i]));
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
	for (int i = n; i--;) assert_true(io_tasks_withdraw(tasks, &task[i]));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
	atomic_store(&held, false);
	end(tasks);
	free(task);
	return ((double)(ended.tv_sec - begun.tv_sec) * 1e9 + (double)(ended.tv_nsec - begun.tv_nsec)) / n;
}

static void to_be_withdrawn_costs_the_same_however_many_wait(void **state) {
	(void)state;
	double few = 1e9, many = 1e9;
	for (int i = 0; i < ROUNDS; i++) {
		double of_few = withdraw_all(FEW), of_many = withdraw_all(MANY);
		if (of_few < few) few = of_few;
		if (of_many < many) many = of_many;
	}
	print_message("%.0f ns each of %d, %.0f ns each of %d\n", few, FEW, many, MANY);
	assert_true(many < DEARER_MAX * few);
}

static void a_task_that_is_withdrawn_does_not_run_and_the_others_do(void **state) {
	(void)state;
	struct io_task first, task[5] = {{.run = count}, {.run = count}, {.run = count}, {.run = count}, {.run = count}};
	io_tasks *tasks = busy(&first);
	atomic_store(&ran, 0);
	for (int i = 0; i < 5; i++) assert_true(io_tasks_add(tasks, &task[i]));
	for (int i = 0; i < 5; i += 2) assert_true(io_tasks_withdraw(tasks, &task[i]));
	assert_false(io_tasks_withdraw(tasks, &task[4]));
	atomic_store(&held, false);
	int handed_back = 0;
	while (handed_back < 3) { /* the first and two of the five */
		assert_int_equal(io_wait(loop, 10000), 0);
		for (const struct io_task *done; (done = io_tasks_done(tasks)); handed_back++)
			assert_true(done == &first || done == &task[1] || done == &task[3]);
	}
	assert_int_equal(atomic_load(&ran), 2);
	end(tasks);
}

static void tasks_that_have_not_begun_are_handed_back_at_the_end(void **state) {
	(void)state;
	struct io_task first, task = {.run = count};
	io_tasks *tasks = busy(&first);
	atomic_store(&ran, 0);
	/* The thread must have begun the first task; otherwise this would not run either. */
	while (io_tasks_withdraw(tasks, &first)) assert_true(io_tasks_add(tasks, &first));
	assert_true(io_tasks_add(tasks, &task));
	atomic_store(&held, false);
	assert_true(io_tasks_stop(tasks, -1));
	assert_ptr_equal(io_tasks_done(tasks), &first);
	(void)io_tasks_done(tasks); /* it has run, or is handed back without having run */
	assert_null(io_tasks_done(tasks));
	assert_true(task.pending == !atomic_load(&ran));
	io_tasks_free(tasks);
}

/* Makes writing a wake fail (ENOSPC). Returns the descriptor for mend_wake(). */
static int break_wake(void) {
	int pipe_end = dup(loop->wake_write), full = open("/dev/full", O_WRONLY);
	assert_true(pipe_end != -1 && full != -1);
	assert_int_not_equal(dup2(full, loop->wake_write), -1);
	close(full);
	return pipe_end;
}

static void mend_wake(int pipe_end) {
	assert_int_not_equal(dup2(pipe_end, loop->wake_write), -1);
	close(pipe_end);
}

/* Returns how many milliseconds pass until the task is handed back. */
static int64_t hand_back(io_tasks *tasks, struct io_task *task) {
	int64_t before = io_now(loop);
	assert_true(io_tasks_add(tasks, task));
	do assert_int_equal(io_wait(loop, -1), 0);
	while (!io_woken(loop) || io_tasks_done(tasks) != task);
	return io_now(loop) - before;
}

static void a_task_is_handed_back_within_a_second_though_the_loop_cannot_be_woken(void **state) {
	(void)state;
	struct io_task task = {.run = count};
	io_tasks *tasks = io_tasks_new(loop, 0, 1);
	int pipe_end = break_wake();
	for (int i = 0; i < 2; i++) assert_in_range(hand_back(tasks, &task), 0, 1500);
	mend_wake(pipe_end);
	(void)hand_back(tasks, &task); /* the loop may still notice the last wake */
	for (int i = 0; i < 10; i++) assert_in_range(hand_back(tasks, &task), 0, 900);
	end(tasks);
}

static void a_wake_that_comes_before_the_wait_ends_it_though_it_cannot_be_written(void **state) {
	(void)state;
	while (io_wait(loop, 0) == 0 && io_woken(loop)) {}
	int pipe_end = break_wake();
	io_wake(loop);
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, 1500), 0);
	mend_wake(pipe_end);
	assert_true(io_woken(loop));
	assert_in_range(io_now(loop) - before, 0, 1000);
}

/* No event shows that the loop sleeps. Without tasks to hand back, it must not wake up. */
static void without_tasks_nothing_limits_the_wait(void **state) {
	(void)state;
	struct io_task first, task = {.run = count};
	io_tasks *tasks = busy(&first);
	assert_true(io_tasks_add(tasks, &task));
	assert_true(io_tasks_withdraw(tasks, &task));
	atomic_store(&held, false);
	do assert_int_equal(io_wait(loop, -1), 0);
	while (io_tasks_done(tasks) != &first);
	while (io_wait(loop, 0) == 0 && io_woken(loop)) {}
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, 1500), 0);
	assert_true(io_now(loop) - before >= 1500);
	end(tasks);
}

static int fails(io_loop *of, int64_t timeout_ns) {
	(void)of, (void)timeout_ns;
	errno = ENOMEM;
	return -1;
}

static void a_wait_that_fails_says_why_though_the_loop_was_woken(void **state) {
	(void)state;
	const struct io_mechanism *mechanism = loop->mechanism;
	struct io_mechanism failing = *mechanism;
	failing.wait = fails;
	io_wake(loop);
	loop->mechanism = &failing;
	assert_int_equal(io_wait(loop, 0), -1);
	assert_int_equal(errno, ENOMEM);
	loop->mechanism = mechanism;
	assert_int_equal(io_wait(loop, -1), 0);
	assert_true(io_woken(loop));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_threads_run_tasks_side_by_side),
		cmocka_unit_test(the_end_does_not_wait_for_a_task_that_hangs),
		cmocka_unit_test(to_be_withdrawn_costs_the_same_however_many_wait),
		cmocka_unit_test(a_task_that_is_withdrawn_does_not_run_and_the_others_do),
		cmocka_unit_test(tasks_that_have_not_begun_are_handed_back_at_the_end),
		cmocka_unit_test(a_task_is_handed_back_within_a_second_though_the_loop_cannot_be_woken),
		cmocka_unit_test(a_wake_that_comes_before_the_wait_ends_it_though_it_cannot_be_written),
		cmocka_unit_test(without_tasks_nothing_limits_the_wait),
		cmocka_unit_test(a_wait_that_fails_says_why_though_the_loop_was_woken),
	};
	loop = io_loop_new();
	int failed = !loop || cmocka_run_group_tests(tests, NULL, NULL);
	io_loop_free(loop);
	return failed;
}
