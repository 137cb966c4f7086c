/* test_jobs.c - jobs beside the loop: they return to it, resume their waiters, and are given up at the end. */
#include "gatling/base/job.h"
#include "tests/unit/check.h"

#include <limits.h>
#include <time.h>

static io_loop *loop;
static struct jobs *jobs;
static int finished, resumed;
static atomic_int ran;
static atomic_bool hold, begun;

struct task {
	struct job job;
};

static void pause_ms(long ms) {
	const struct timespec time = {.tv_nsec = ms * 1000000};
	nanosleep(&time, NULL);
}

static void run(struct job *job, const atomic_bool *stop) {
	(void)job;
	while (atomic_load(&hold) && !atomic_load(stop)) pause_ms(1);
	atomic_fetch_add(&ran, 1);
}

static void finish(struct job *job) {
	finished++;
	free(job);
}

static void resume(struct waiter *waiter) {
	assert_null(waiter->link);
	resumed++;
}

static struct task *add(void) {
	struct task *t = calloc(1, sizeof *t);
	t->job = (struct job){.run = run, .finish = finish};
	assert_true(jobs_add(jobs, &t->job));
	return t;
}

static void wait_for(int jobs_finished) {
	while (finished < jobs_finished) {
		assert_int_equal(io_wait(loop, -1), 0); /* the thread ends the wait */
		jobs_collect(jobs);
	}
}

static int set_up(void **state) {
	(void)state;
	loop = io_loop_new();
	jobs = jobs_new(loop, 0, 1);
	finished = resumed = 0;
	atomic_store(&ran, 0);
	atomic_store(&hold, false);
	atomic_store(&begun, false);
	return !jobs;
}

static int tear_down(void **state) {
	(void)state;
	jobs_free(jobs);
	io_loop_free(loop);
	return 0;
}

static void a_job_ends_the_wait_of_the_loop(void **state) {
	(void)state;
	for (int i = 1; i <= 100; i++) {
		add();
		wait_for(i);
	}
	assert_int_equal(atomic_load(&ran), 100);
}

static void who_waits_is_resumed_once_and_who_left_is_not(void **state) {
	(void)state;
	struct waiter waiter[3] = {{.resume = resume}, {.resume = resume}, {.resume = resume}};
	atomic_store(&hold, true);
	struct task *t = add();
	for (size_t i = 0; i < COUNT(waiter); i++) job_wait(&t->job, &waiter[i]);
	waiter_leave(&waiter[1]);
	waiter_leave(&waiter[1]);
	atomic_store(&hold, false);
	wait_for(1);
	assert_int_equal(resumed, 2);
}

static struct waiter *other;

static void resume_and_end_another(struct waiter *waiter) {
	(void)waiter;
	resumed++;
	waiter_leave(other);
}

static void who_is_resumed_may_end_who_waits_with_it(void **state) {
	(void)state;
	struct waiter a = {.resume = resume_and_end_another}, b = {.resume = resume_and_end_another};
	atomic_store(&hold, true);
	struct task *t = add();
	job_wait(&t->job, &a);
	job_wait(&t->job, &b);
	other = &a; /* the last waiter is resumed first */
	atomic_store(&hold, false);
	wait_for(1);
	assert_int_equal(resumed, 1);
}

static void a_job_whose_waiters_have_gone_is_not_run(void **state) {
	(void)state;
	struct waiter gone = {.resume = resume}, stays = {.resume = resume};
	atomic_store(&hold, true);
	add(); /* keeps the thread busy */
	struct task *wanted = add(), *unwanted = add();
	job_wait(&wanted->job, &stays);
	job_wait(&wanted->job, &gone);
	waiter_leave(&gone);
	job_wait(&unwanted->job, &gone);
	waiter_leave(&gone);
	assert_int_equal(jobs_count(jobs), 3);
	atomic_store(&hold, false);
	wait_for(3);
	assert_int_equal(atomic_load(&ran), 2);
	assert_int_equal(resumed, 1);
	assert_int_equal(jobs_count(jobs), 0);
}

/* A job in three parts. */
struct parts {
	struct job job;
	int name, left;
};

static char order[8];

static void run_part(struct job *job, const atomic_bool *stop) {
	struct parts *p = (struct parts *)job;
	atomic_store(&begun, true);
	while (atomic_load(&hold) && !atomic_load(stop)) pause_ms(1);
	order[strlen(order)] = (char)p->name;
	job->task.again = --p->left > 0;
}

static void forget(struct job *job) {
	(void)job;
	finished++;
}

static void jobs_that_go_on_take_turns_and_their_waiters_wait_for_the_end(void **state) {
	(void)state;
	struct waiter waiter = {.resume = resume};
	struct parts a = {.job = {.run = run_part, .finish = forget}, .name = 'a', .left = 3};
	struct parts b = {.job = {.run = run_part, .finish = forget}, .name = 'b', .left = 1};
	struct parts c = {.job = {.run = run_part, .finish = forget}, .name = 'c', .left = 2};
	atomic_store(&hold, true);
	assert_true(jobs_add(jobs, &a.job) && jobs_add(jobs, &b.job) && jobs_add(jobs, &c.job));
	job_wait(&a.job, &waiter);
	atomic_store(&hold, false);
	wait_for(3);
	assert_string_equal(order, "abcaca");
	assert_int_equal(resumed, 1);
}

static void a_job_that_has_begun_goes_on_when_its_waiters_leave(void **state) {
	(void)state;
	struct waiter gone = {.resume = resume};
	struct parts a = {.job = {.run = run_part, .finish = forget}, .name = 'a', .left = 3};
	memset(order, 0, sizeof order);
	atomic_store(&hold, true);
	assert_true(jobs_add(jobs, &a.job));
	while (!atomic_load(&begun)) pause_ms(1);
	job_wait(&a.job, &gone);
	waiter_leave(&gone);
	atomic_store(&hold, false);
	wait_for(1);
	assert_string_equal(order, "aaa");
}

static void a_job_that_goes_on_is_finished_at_the_end(void **state) {
	(void)state;
	struct parts a = {.job = {.run = run_part, .finish = forget}, .name = 'a', .left = INT_MAX};
	memset(order, 0, sizeof order);
	atomic_store(&hold, true);
	assert_true(jobs_add(jobs, &a.job));
	jobs_free(jobs);
	assert_int_equal(finished, 1);
	jobs = NULL;
}

static void there_are_no_more_jobs_than_allowed(void **state) {
	(void)state;
	struct job more = {.run = run, .finish = finish};
	atomic_store(&hold, true);
	for (int i = 0; i < JOBS_MAX; i++) add();
	assert_false(jobs_add(jobs, &more));
	atomic_store(&hold, false);
	wait_for(JOBS_MAX);
	add();
	wait_for(JOBS_MAX + 1);
}

static void at_the_end_what_runs_is_told_to_stop_and_all_are_finished(void **state) {
	(void)state;
	atomic_store(&hold, true);
	for (int i = 0; i < 10; i++) add();
	jobs_free(jobs);
	assert_int_equal(finished, 10);
	assert_true(atomic_load(&ran) <= 1);
	jobs = NULL;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_job_ends_the_wait_of_the_loop),
		TEST(who_waits_is_resumed_once_and_who_left_is_not),
		TEST(who_is_resumed_may_end_who_waits_with_it),
		TEST(a_job_whose_waiters_have_gone_is_not_run),
		TEST(jobs_that_go_on_take_turns_and_their_waiters_wait_for_the_end),
		TEST(a_job_that_has_begun_goes_on_when_its_waiters_leave),
		TEST(a_job_that_goes_on_is_finished_at_the_end),
		TEST(there_are_no_more_jobs_than_allowed),
		TEST(at_the_end_what_runs_is_told_to_stop_and_all_are_finished),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
