/* test_timer.c - a deadline comes up once, never early, and at most a tick late. The tests move the clock. */
#include "io/internal.h"
#include "tests/unit/check.h"
#include "tests/unit/dice.h"

enum { FDS = 200, START_MS = 123456789 };

static struct io_loop loop;
static struct io_entry entry[FDS];
static int64_t model[FDS]; /* the deadlines; 0: none */

static int set_up(void **state) {
	(void)state;
	memset(&loop, 0, sizeof loop);
	memset(entry, 0, sizeof entry);
	memset(model, 0, sizeof model);
	loop.entry = entry;
	loop.now_ns = (int64_t)START_MS * 1000000;
	io_timer_init(&loop);
	return 0;
}

static void pass(int64_t ms) {
	loop.now_ns += ms * 1000000;
	io_timer_advance(&loop);
}

static void set(int fd, int64_t deadline_ms) {
	io_timeout(&loop, fd, deadline_ms);
	model[fd] = deadline_ms;
}

/* Takes the descriptors that have timed out. None may be early, or without a deadline. */
static void take(void) {
	for (int fd; (fd = io_timedout(&loop)) != -1;) {
		assert_true(model[fd] && model[fd] <= io_now(&loop));
		model[fd] = 0;
	}
}

/* Checks that no deadline is overdue. */
static void check_late(int64_t allowed_ms) {
	for (int fd = 0; fd < FDS; fd++) assert_true(!model[fd] || model[fd] + allowed_ms > io_now(&loop));
}

static void a_deadline_comes_up_once_and_within_a_tick(void **state) {
	(void)state;
	for (int64_t ms = 1; ms <= 3 * IO_TICK_MS; ms++) {
		set(0, io_now(&loop) + ms);
		int64_t deadline = model[0];
		while (model[0]) {
			pass(1);
			take();
			assert_true(io_now(&loop) <= deadline + IO_TICK_MS);
		}
		pass(10 * IO_TICK_MS);
		assert_int_equal(io_timedout(&loop), -1);
	}
}

static int64_t limit_ms(void) {
	int64_t limit_ns = io_timer_limit(&loop);
	return limit_ns < 0 ? limit_ns : limit_ns / IO_NS_PER_MS;
}

static void a_deadline_in_the_past_comes_up_soon(void **state) {
	(void)state;
	set(0, 1);
	assert_true(limit_ms() <= IO_TICK_MS);
	pass(IO_TICK_MS);
	take();
	assert_int_equal(model[0], 0);
}

static void a_deadline_farther_than_the_wheel_is_round_comes_up_in_time(void **state) {
	(void)state;
	const int64_t day_ms = 86400000;
	set(0, io_now(&loop) + day_ms);
	for (int64_t passed = 0; passed < day_ms; passed += 5000) {
		assert_true(model[0]);
		pass(5000);
		take();
	}
	pass(IO_TICK_MS);
	take();
	assert_int_equal(model[0], 0);
}

static void what_is_cancelled_does_not_come_up(void **state) {
	(void)state;
	for (int fd = 0; fd < 3; fd++) set(fd, io_now(&loop) + 250);
	set(0, 0);
	io_timer_cancel(&loop, 1);
	model[1] = 0;
	pass(1000);
	/* also if it has timed out, but was not handed out yet */
	io_timeout(&loop, 2, 0);
	assert_int_equal(io_timedout(&loop), -1);
}

static void the_clock_may_stand_still_for_long(void **state) {
	(void)state;
	for (int fd = 0; fd < FDS; fd++) set(fd, io_now(&loop) + fd * 1000 + 1);
	pass((int64_t)FDS * 1000 + 2 * IO_TICK_MS);
	take();
	check_late(0);
}

/* The loop sleeps as long as possible: until the first deadline, or until a deadline that was moved later would have
 * been. */
static void waiting_is_limited_by_the_first_deadline(void **state) {
	(void)state;
	assert_int_equal(limit_ms(), -1);
	set(0, io_now(&loop) + 10000);
	int64_t limit = limit_ms();
	assert_true(limit >= 10000 && limit <= 10000 + IO_TICK_MS);
	set(1, io_now(&loop) + 500);
	limit = limit_ms();
	assert_true(limit >= 500 && limit <= 500 + IO_TICK_MS);
	set(1, 0);
	pass(700);
	limit = limit_ms();
	assert_true(limit >= 9300 && limit <= 9300 + IO_TICK_MS);
	pass(20000);
	assert_int_equal(limit_ms(), 0);
	take();
	assert_int_equal(limit_ms(), -1);
}

/* The loop sleeps as long as the wheel allows. Whatever is set, moved and cancelled, everything comes up within a tick.
 */
static void any_mixture_keeps_the_promise(void **state) {
	(void)state;
	for (int step = 0; step < 300000; step++) {
		int fd = (int)dice(FDS);
		switch (dice(8)) {
		case 0: set(fd, 0); break;
		case 1:
			io_timer_cancel(&loop, fd);
			model[fd] = 0;
			break;
		case 2: set(fd, io_now(&loop) + dice(200000)); break;
		case 3:
		case 4: set(fd, io_now(&loop) + dice(30000)); break;
		case 5: set(fd, io_now(&loop) + dice(300)); break;
		default: {
			int64_t pause = 1 + dice(3000), limit = limit_ms();
			assert_true(limit >= -1);
			pass(limit == -1 || pause < limit ? pause : limit);
			take();
			check_late(IO_TICK_MS);
		}
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_deadline_comes_up_once_and_within_a_tick, set_up),
		cmocka_unit_test_setup(a_deadline_in_the_past_comes_up_soon, set_up),
		cmocka_unit_test_setup(a_deadline_farther_than_the_wheel_is_round_comes_up_in_time, set_up),
		cmocka_unit_test_setup(what_is_cancelled_does_not_come_up, set_up),
		cmocka_unit_test_setup(the_clock_may_stand_still_for_long, set_up),
		cmocka_unit_test_setup(waiting_is_limited_by_the_first_deadline, set_up),
		cmocka_unit_test_setup(any_mixture_keeps_the_promise, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
