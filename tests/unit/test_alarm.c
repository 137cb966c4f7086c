/* test_alarm.c - an alarm comes up once, never early, in the order of the deadlines, and ends a wait in time. */
#include <fcntl.h>
#include <unistd.h>

#include "io/alarm.h"
#include "io/internal.h"
#include "tests/unit/check.h"
#include "tests/unit/dice.h"

enum { ALARMS = 500, LONG_MS = 10000, US = 1000, MS = IO_NS_PER_MS };

static io_loop *loop;
static struct io_alarm alarm_of[ALARMS];
static int64_t model[ALARMS]; /* the deadlines; 0: not set */

static int set_up(void **state) {
	(void)state;
	memset(alarm_of, 0, sizeof alarm_of);
	memset(model, 0, sizeof model);
	loop = io_loop_new();
	return loop ? 0 : -1;
}

static int tear_down(void **state) {
	(void)state;
	io_loop_free(loop);
	return 0;
}

static void set(int i, int64_t deadline_ns) {
	assert_int_equal(io_alarm_set(loop, &alarm_of[i], deadline_ns), 0);
	model[i] = deadline_ns && deadline_ns <= io_now_ns(loop) ? io_now_ns(loop) + 1 : deadline_ns;
	assert_int_equal(alarm_of[i].deadline_ns, model[i]);
}

static int due(void) {
	const struct io_alarm *a = io_alarm_due(loop);
	return a ? (int)(a - alarm_of) : -1;
}

/* Takes the alarms that are due: all whose time has come, in order, and no others. */
static int take(void) {
	int count = 0;
	int64_t last_ns = 0;
	for (int i; (i = due()) != -1; count++) {
		assert_true(model[i] && model[i] <= io_now_ns(loop) && model[i] >= last_ns);
		assert_int_equal(alarm_of[i].deadline_ns, 0);
		last_ns = model[i];
		model[i] = 0;
	}
	for (int i = 0; i < ALARMS; i++) assert_true(!model[i] || model[i] > io_now_ns(loop));
	return count;
}

/* --- the heap: these tests move the clock --- */

static void alarms_come_up_once_and_in_order(void **state) {
	(void)state;
	const int64_t now = io_now_ns(loop);
	for (int i = 0; i < ALARMS; i++) set(i, now + 1 + i * 7919 % ALARMS);
	loop->now_ns = now + ALARMS / 2;
	assert_int_equal(take(), ALARMS / 2);
	loop->now_ns = now + ALARMS;
	assert_int_equal(take(), ALARMS - ALARMS / 2);
	loop->now_ns += LONG_MS;
	assert_int_equal(due(), -1);
}

static void one_that_was_moved_comes_up_at_its_new_time(void **state) {
	(void)state;
	const int64_t now = io_now_ns(loop);
	set(0, now + 100);
	set(1, now + 200);
	set(2, now + 300);
	set(0, now + 250); /* later */
	set(2, now + 150); /* earlier */
	for (int64_t passed = 50; passed <= 250; passed += 50) {
		loop->now_ns = now + passed;
		assert_int_equal(due(), passed == 150 ? 2 : passed == 200 ? 1 : passed == 250 ? 0 : -1);
		assert_int_equal(due(), -1);
	}
}

static void what_is_cancelled_does_not_come_up(void **state) {
	(void)state;
	const int64_t now = io_now_ns(loop);
	io_alarm_cancel(loop, &alarm_of[0]); /* not set */
	for (int i = 0; i < 5; i++) set(i, now + 100 + i);
	io_alarm_cancel(loop, &alarm_of[0]);
	assert_int_equal(io_alarm_set(loop, &alarm_of[2], 0), 0);
	io_alarm_cancel(loop, &alarm_of[4]);
	io_alarm_cancel(loop, &alarm_of[4]);
	loop->now_ns += 1000;
	assert_int_equal(due(), 1);
	io_alarm_cancel(loop, &alarm_of[3]); /* also if its time has come */
	assert_int_equal(due(), -1);
}

/* Its owner may be freed as soon as it has come up or is cancelled. */
static void the_loop_knows_nothing_of_an_alarm_that_is_not_set(void **state) {
	(void)state;
	enum { OWNERS = 100 };
	struct io_alarm *owner[OWNERS];
	for (int i = 0; i < OWNERS; i++) {
		owner[i] = calloc(1, sizeof *owner[i]);
		assert_int_equal(io_alarm_set(loop, owner[i], io_now_ns(loop) + 1 + i % 10), 0);
	}
	for (int i = 0; i < OWNERS; i += 2) {
		io_alarm_cancel(loop, owner[i]);
		free(owner[i]);
	}
	loop->now_ns += 10;
	int count = 0;
	for (struct io_alarm *a; (a = io_alarm_due(loop)); count++) free(a);
	assert_int_equal(count, OWNERS / 2);
}

static void one_set_for_the_past_comes_up_in_the_next_turn(void **state) {
	(void)state;
	set(0, 1);
	assert_int_equal(due(), -1);
	for (int turn = 0; turn < 3; turn++) {
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		assert_int_equal(due(), 0);
		set(0, -1);
		assert_int_equal(due(), -1);
	}
}

static void any_mixture_keeps_the_promise(void **state) {
	(void)state;
	int taken = 0;
	for (int step = 0; step < 200000; step++) {
		const int i = (int)dice(ALARMS);
		const int64_t now = io_now_ns(loop);
		switch (dice(8)) {
		case 0: set(i, 0); break;
		case 1: set(i, now - dice(1000)); break;
		case 2: set(i, now + dice(100000)); break;
		case 3: set(i, now + dice(10)); break;
		case 4: set(i, model[i] ? model[i] + dice(1000) : 0); break;
		case 5: set(i, model[i] ? model[i] - dice(1000) : 0); break;
		case 6:
			io_alarm_cancel(loop, &alarm_of[i]);
			model[i] = 0;
			break;
		default: loop->now_ns += dice(500); taken += take();
		}
	}
	assert_true(taken > 1000);
}

/* --- waiting --- */

static int64_t late_by(int64_t deadline_ns) {
	const int64_t late_ns = io_now_ns(loop) - deadline_ns;
	assert_true(late_ns >= 0);
	return late_ns;
}

/* Waits until an alarm is due, and returns it. */
static int wait_for_alarm(bool until) {
	for (int i;;) {
		assert_int_equal(until ? io_waituntil(loop, io_now_ns(loop) + (int64_t)LONG_MS * MS) : io_wait(loop, -1), 0);
		if ((i = due()) != -1) return i;
	}
}

static void the_first_alarm_ends_a_wait_in_time(void **state) {
	(void)state;
	const int64_t precision_ns = strcmp(io_mechanism(), "poll") == 0 ? MS : 0;
	for (int until = 0; until < 2; until++) {
		int64_t least_late_ns = INT64_MAX;
		for (int round = 0; round < 20; round++) {
			usleep(2 * US); /* since the last wait: it does not count */
			const int64_t deadline_ns = io_read_clock() + 300 * US;
			set(0, deadline_ns + (int64_t)LONG_MS * MS);
			set(1, deadline_ns);
			assert_int_equal(wait_for_alarm(until), 1);
			const int64_t late_ns = late_by(deadline_ns);
			if (late_ns < least_late_ns) least_late_ns = late_ns;
		}
		assert_true(least_late_ns < precision_ns + 300 * US);
	}
}

static void one_that_was_moved_does_not_end_a_wait_at_its_old_time(void **state) {
	(void)state;
	const int64_t begun_ns = io_read_clock();
	set(0, begun_ns + MS);
	set(1, begun_ns + 2 * MS);
	set(0, begun_ns + 40 * MS);
	set(1, 0);
	assert_int_equal(io_wait(loop, 20), 0); /* without the alarm it takes its time */
	(void)late_by(begun_ns + 20 * MS);
	assert_int_equal(due(), -1);
	assert_int_equal(wait_for_alarm(false), 0);
	(void)late_by(begun_ns + 40 * MS);
}

static void an_alarm_that_is_far_away_does_not_end_a_wait(void **state) {
	(void)state;
	set(0, INT64_MAX);
	const int64_t begun_ns = io_read_clock();
	assert_int_equal(io_wait(loop, 20), 0);
	(void)late_by(begun_ns + 20 * MS);
	assert_int_equal(due(), -1);
	assert_int_equal(io_alarm_limit(loop, -1), (int64_t)3600 * IO_NS_PER_S);
	set(0, 0);
}

static void alarms_and_deadlines_of_descriptors_end_the_same_wait(void **state) {
	(void)state;
	char cookie;
	int end[2];
	assert_int_equal(pipe2(end, O_NONBLOCK), 0);
	assert_int_equal(io_fd(loop, end[0], &cookie), 0);
	const int64_t now_ms = io_now(loop), now_ns = io_now_ns(loop);
	io_timeout(loop, end[0], now_ms + 150);
	set(0, now_ns + 50 * MS);
	set(1, now_ns + 400 * MS);
	int alarms = 0, timeouts = 0;
	while (!alarms || !timeouts) {
		assert_int_equal(io_wait(loop, -1), 0);
		if (due() == 0) {
			(void)late_by(now_ns + 50 * MS);
			alarms++;
		}
		for (int fd; (fd = io_timedout(loop)) != -1; timeouts++) {
			assert_int_equal(fd, end[0]);
			assert_true(io_now(loop) >= now_ms + 150);
		}
	}
	assert_int_equal(alarms + timeouts, 2);
	/* what is ready comes up, whatever alarms there are */
	assert_int_equal(io_wantread(loop, end[0]), 0);
	char byte;
	assert_int_equal(io_tryread(loop, end[0], &byte, 1), -1);
	assert_int_equal(write(end[1], "", 1), 1);
	int fd;
	do assert_int_equal(io_wait(loop, -1), 0);
	while ((fd = io_canread(loop)) == -1);
	assert_int_equal(fd, end[0]);
	io_close(loop, end[0]);
	close(end[1]);
}

#define IN_LOOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		IN_LOOP(alarms_come_up_once_and_in_order),
		IN_LOOP(one_that_was_moved_comes_up_at_its_new_time),
		IN_LOOP(what_is_cancelled_does_not_come_up),
		IN_LOOP(the_loop_knows_nothing_of_an_alarm_that_is_not_set),
		IN_LOOP(one_set_for_the_past_comes_up_in_the_next_turn),
		IN_LOOP(any_mixture_keeps_the_promise),
		IN_LOOP(the_first_alarm_ends_a_wait_in_time),
		IN_LOOP(one_that_was_moved_does_not_end_a_wait_at_its_old_time),
		IN_LOOP(an_alarm_that_is_far_away_does_not_end_a_wait),
		IN_LOOP(alarms_and_deadlines_of_descriptors_end_the_same_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
