/* test_reader.c - a download does not wait for each window of its file. The tests simulate the disk: what preadv2(2)
 * finds in memory, and when pread(2) in the thread has read the rest. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "io/reader.h"

enum { WINDOWS = 4, WINDOW = IO_READ_WINDOW, HALF = WINDOW / 2, SIZE = WINDOWS * WINDOW, PIECE = 64 * 1024 };
enum { FILES = 2 };

static io_loop *loop;
static int out, in, file[FILES]; /* file: real descriptors, from which nothing is read */
static atomic_bool warm[FILES][SIZE / PIECE];
static sem_t may_read; /* windows */
static atomic_int windows_begun;
static atomic_llong bytes_read; /* by the thread */
static bool quick;              /* the disk answers before the attempt to read returns */
static bool interrupted;        /* the next attempt is interrupted, for a millisecond */
static bool slow;               /* all attempts are */
static bool woken;              /* the loop was told of a window that was read */
static pthread_t main_thread;

static atomic_bool *piece_of(int fd, off_t offset) { return &warm[fd == file[1]][offset / PIECE]; }

ssize_t preadv2(int fd, const struct iovec *part, int parts, off_t offset, int flags) {
	const struct timespec millisecond = {.tv_nsec = 1000000};
	(void)parts, (void)flags;
	bool in_memory = *piece_of(fd, offset);
	if (slow || interrupted || (quick && !in_memory)) nanosleep(&millisecond, NULL);
	interrupted = false;
	errno = EAGAIN;
	return quick || in_memory ? (ssize_t)part->iov_len : -1;
}

/* Reads in the thread, waiting once for each window until it may. The loop must not wait for the disk. */
ssize_t pread(int fd, void *buffer, size_t length, off_t offset) {
	static off_t next = -1; /* the next offset in this window */
	(void)buffer;
	if (pthread_equal(pthread_self(), main_thread)) {
		assert_true(*piece_of(fd, offset));
		return (ssize_t)length;
	}
	bytes_read += (long long)length;
	if (offset != next) {
		windows_begun++;
		sem_wait(&may_read);
	}
	next = (offset + (off_t)length) % WINDOW == 0 ? -1 : offset + (off_t)length;
	for (off_t at = offset; at < offset + (off_t)length; at += PIECE) *piece_of(fd, at) = true;
	return (ssize_t)length;
}

int posix_fadvise(int fd, off_t offset, off_t length, int advice) {
	(void)fd, (void)offset, (void)length, (void)advice;
	return 0;
}

static int set_up(void **state) {
	int end[2];
	(void)state;
	main_thread = pthread_self();
	memset(warm, 0, sizeof warm);
	windows_begun = 0;
	bytes_read = 0;
	quick = interrupted = slow = false;
	assert_int_equal(sem_init(&may_read, 0, 0), 0);
	loop = io_loop_new();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end), 0);
	out = end[0];
	in = end[1];
	for (int i = 0; i < FILES; i++) file[i] = open("/dev/null", O_RDONLY);
	assert_int_equal(io_fd(loop, in, loop), 0);
	assert_int_equal(io_fd(loop, out, loop), 0);
	assert_int_equal(io_wantwrite(loop, out), 0);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	for (int i = 0; i < WINDOWS; i++) sem_post(&may_read);
	io_close(loop, out);
	io_close(loop, in);
	for (int i = 0; i < FILES; i++) close(file[i]);
	io_loop_free(loop);
	sem_destroy(&may_read);
	return 0;
}

static bool found_of(int number, off_t offset) {
	return io_in_memory(loop, out, file[number], offset, PIECE, (uint64_t)(SIZE - offset));
}

static bool found(off_t offset) { return found_of(0, offset); }

static bool is_warm(int number, off_t start) {
	for (off_t at = start; at < start + WINDOW; at += PIECE)
		if (!*piece_of(file[number], at)) return false;
	return true;
}

static void turn(void) {
	assert_int_equal(io_wait(loop, 10), 0);
	woken |= io_woken(loop);
	while (io_canwrite(loop) != -1) continue;
}

static bool is_late(time_t started) { return time(NULL) - started >= 10; }

/* Lets the thread read a window, and waits until the loop has been told. */
static void read_window(int number, off_t start) {
	const time_t started = time(NULL);
	woken = false;
	sem_post(&may_read);
	while ((!woken || !is_warm(number, start) || io_reading(loop, out)) && !is_late(started)) turn();
	assert_true(is_warm(number, start));
}

static void await_window_begun(int number) {
	const time_t started = time(NULL);
	while (windows_begun < number && !is_late(started)) turn();
	assert_int_equal(windows_begun, number);
}

static void the_next_window_is_read_when_half_of_the_last_is_sent(void **state) {
	(void)state;
	assert_false(found(0));
	assert_true(io_reading(loop, out));
	read_window(0, 0);
	assert_true(found(0));
	assert_true(found(HALF - 2 * PIECE));
	turn();
	assert_int_equal(windows_begun, 1);
	assert_true(found(HALF - PIECE));
	await_window_begun(2);
	assert_false(io_reading(loop, out));
	read_window(0, WINDOW);
	assert_true(found(WINDOW));
	assert_false(is_warm(0, 2 * WINDOW));
}

static void what_is_being_read_ahead_is_waited_for(void **state) {
	(void)state;
	char byte[PIECE];
	const off_t middle = WINDOW + HALF;
	assert_false(found(0));
	read_window(0, 0);
	assert_true(found(HALF));
	assert_int_equal(io_read_file(loop, out, file[0], middle, byte, PIECE, (uint64_t)(SIZE - middle)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_true(io_reading(loop, out));
	read_window(0, WINDOW);
	assert_int_equal(io_read_file(loop, out, file[0], middle, byte, PIECE, (uint64_t)(SIZE - middle)), PIECE);
}

static void what_is_read_ahead_in_part_is_not_taken_for_all(void **state) {
	(void)state;
	const off_t last = 2 * WINDOW - PIECE;
	assert_false(found(0));
	read_window(0, 0);
	assert_true(found(HALF));
	await_window_begun(2);
	assert_false(io_in_memory(loop, out, file[0], last, 2 * PIECE, (uint64_t)(SIZE - last)));
	read_window(0, WINDOW);
	assert_false(io_in_memory(loop, out, file[0], last, 2 * PIECE, (uint64_t)(SIZE - last)));
	assert_true(io_reading(loop, out));
}

static void what_is_in_memory_is_not_read_ahead(void **state) {
	(void)state;
	*piece_of(file[0], WINDOW) = true;
	assert_false(found(0));
	read_window(0, 0);
	assert_true(found(HALF));
	turn();
	assert_int_equal(windows_begun, 1);
}

static void what_a_quick_disk_has_read_meanwhile_was_not_in_memory(void **state) {
	(void)state;
	quick = true;
	assert_false(found(0));
	read_window(0, 0);
	assert_true(found(0));
	assert_true(found(HALF));
	await_window_begun(2);
	assert_false(found(WINDOW));
	read_window(0, WINDOW);
	assert_true(found(WINDOW));
}

static void what_is_in_memory_is_found_there_though_a_look_is_interrupted(void **state) {
	(void)state;
	char byte[PIECE];
	for (int i = 0; i < WINDOW / PIECE; i++) warm[0][i] = true;
	interrupted = true;
	assert_true(found(0));
	interrupted = true;
	assert_int_equal(io_read_file(loop, out, file[0], 0, byte, PIECE, WINDOW), PIECE);
	assert_int_equal(io_read_file(loop, out, file[0], PIECE, byte, PIECE, WINDOW - PIECE), PIECE);
	assert_int_equal(windows_begun, 0);
}

static void where_all_looks_take_long_a_window_is_read_once(void **state) {
	(void)state;
	slow = true;
	for (int i = 0; i < SIZE / PIECE; i++) warm[0][i] = true;
	for (int i = 0; i < WINDOWS; i++) sem_post(&may_read);
	for (off_t at = 0; at < SIZE; at += PIECE) {
		const time_t started = time(NULL);
		while (!found(at) && !is_late(started)) turn();
		assert_false(is_late(started));
	}
	assert_int_equal(bytes_read, SIZE);
	char byte[PIECE];
	io_reader_forget(loop, out);
	for (int i = 0; i < WINDOWS; i++) sem_post(&may_read);
	for (off_t at = 0; at < SIZE; at += PIECE) {
		const time_t started = time(NULL);
		while (io_read_file(loop, out, file[0], at, byte, PIECE, (uint64_t)(SIZE - at)) == -1 && !is_late(started))
			turn();
		assert_false(is_late(started));
	}
	assert_in_range(bytes_read, 2 * SIZE - PIECE, 2 * SIZE);
}

static void what_is_under_way_is_waited_for_though_its_ends_are_in_memory(void **state) {
	(void)state;
	for (int i = 0; i < SIZE / PIECE; i++) warm[1][i] = true;
	assert_false(found(0));
	read_window(0, 0);
	*piece_of(file[0], 2 * WINDOW) = true;
	assert_true(found(HALF));
	await_window_begun(2);
	assert_true(found(HALF + PIECE)); /* before it */
	assert_true(found(2 * WINDOW));   /* after it */
	assert_true(found_of(1, WINDOW)); /* of another file */
	*piece_of(file[0], WINDOW) = true;
	assert_false(found(WINDOW));
	read_window(0, WINDOW);
	assert_true(found(WINDOW));
}

static void a_read_from_a_quick_disk_does_not_replace_one_that_is_under_way(void **state) {
	char byte[PIECE];
	(void)state;
	assert_false(found(0));
	await_window_begun(1);
	quick = true;
	assert_int_equal(io_read_file(loop, out, file[1], 0, byte, PIECE, SIZE), PIECE);
	sem_post(&may_read);
	const time_t started = time(NULL);
	while (io_reading(loop, out) && !is_late(started)) turn();
	assert_true(found(0));
	assert_int_equal(loop->tasks, 0);
}

static void what_was_withdrawn_was_not_read(void **state) {
	(void)state;
	assert_false(found(0));
	read_window(0, 0);
	assert_false(io_in_memory(loop, in, file[1], 0, PIECE, WINDOW)); /* the thread is busy with this one, */
	await_window_begun(2);
	assert_true(found(HALF)); /* so that the next window waits */
	assert_false(found(2 * WINDOW));
	sem_post(&may_read);
	read_window(0, 2 * WINDOW);
	assert_true(found(2 * WINDOW));
	quick = true;
	assert_false(found(WINDOW));
}

static void what_follows_a_read_from_a_quick_disk_is_left_to_the_thread(void **state) {
	(void)state;
	char byte[PIECE];
	quick = true;
	assert_int_equal(io_read_file(loop, out, file[0], 0, byte, PIECE, SIZE), PIECE);
	assert_int_equal(io_read_file(loop, out, file[0], PIECE, byte, PIECE, SIZE - PIECE), -1);
	assert_int_equal(errno, EAGAIN);
	sem_post(&may_read);
	while (io_reading(loop, out)) turn();
	assert_int_equal(io_read_file(loop, out, file[0], PIECE, byte, PIECE, SIZE - PIECE), PIECE);
	assert_int_equal(windows_begun, 1);
}

static void the_page_at_which_a_window_ends_is_not_in_the_next(void **state) {
	(void)state;
	assert_false(found(1000));
	sem_post(&may_read);
	while (io_reading(loop, out)) turn();
	assert_true(found(1000));
	assert_true(found(WINDOW - PIECE));
	await_window_begun(2);
}

static void a_read_that_was_not_asked_for_again_is_not_taken_for_the_next(void **state) {
	char byte[PIECE];
	(void)state;
	assert_false(found(0));
	read_window(0, 0);
	assert_true(found(HALF));
	assert_int_equal(io_read_file(loop, out, file[0], WINDOW, byte, PIECE, SIZE - WINDOW), -1);
	read_window(0, WINDOW);
}

static void another_file_comes_before_what_is_to_be_read_ahead(void **state) {
	(void)state;
	assert_false(found(0));
	read_window(0, 0);
	assert_false(io_in_memory(loop, in, file[1], 2 * WINDOW, PIECE, WINDOW)); /* the thread is busy with this one, */
	assert_true(found(HALF));                                                 /* so that this one waits */
	assert_false(found_of(1, 0));
	sem_post(&may_read);
	read_window(1, 0);
	assert_true(found_of(1, 0));
	assert_false(is_warm(0, WINDOW));
}

/* Returns whether out comes up in a turn. */
static bool comes_up(void) {
	assert_int_equal(io_wait(loop, 10), 0);
	bool up = false;
	for (int fd; (fd = io_canwrite(loop)) != -1;) up |= fd == out;
	return up;
}

static void a_descriptor_comes_up_when_its_file_has_been_read_and_not_before(void **state) {
	(void)state;
	const time_t started = time(NULL);
	assert_false(found(0));
	await_window_begun(1);
	assert_false(comes_up());
	io_write_meanwhile(loop, out, true); /* something else is sent */
	assert_true(comes_up());
	io_write_meanwhile(loop, out, false);
	assert_false(comes_up());
	sem_post(&may_read);
	while (!comes_up()) assert_false(is_late(started));
	assert_false(io_reading(loop, out));
	assert_true(found(0));
}

static void a_read_for_one_that_was_closed_is_nothing_to_the_next_owner_of_the_number(void **state) {
	(void)state;
	const int number = out;
	assert_false(found(0));
	await_window_begun(1);
	io_close(loop, out);
	assert_int_equal(dup2(in, number), number);
	assert_int_equal(io_fd(loop, out, loop), 0);
	assert_int_equal(io_wantwrite(loop, out), 0);
	assert_true(comes_up());
	assert_false(found_of(1, 0));
	sem_post(&may_read); /* for the previous one */
	await_window_begun(2);
	assert_false(comes_up());
	assert_true(io_reading(loop, out));
	read_window(1, 0);
	assert_true(found_of(1, 0));
}

int main(void) {
#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FILES(the_next_window_is_read_when_half_of_the_last_is_sent),
		WITH_FILES(what_is_being_read_ahead_is_waited_for),
		WITH_FILES(what_is_read_ahead_in_part_is_not_taken_for_all),
		WITH_FILES(what_is_in_memory_is_not_read_ahead),
		WITH_FILES(what_a_quick_disk_has_read_meanwhile_was_not_in_memory),
		WITH_FILES(what_is_in_memory_is_found_there_though_a_look_is_interrupted),
		WITH_FILES(where_all_looks_take_long_a_window_is_read_once),
		WITH_FILES(what_is_under_way_is_waited_for_though_its_ends_are_in_memory),
		WITH_FILES(a_read_from_a_quick_disk_does_not_replace_one_that_is_under_way),
		WITH_FILES(what_was_withdrawn_was_not_read),
		WITH_FILES(what_follows_a_read_from_a_quick_disk_is_left_to_the_thread),
		WITH_FILES(the_page_at_which_a_window_ends_is_not_in_the_next),
		WITH_FILES(a_read_that_was_not_asked_for_again_is_not_taken_for_the_next),
		WITH_FILES(another_file_comes_before_what_is_to_be_read_ahead),
		WITH_FILES(a_descriptor_comes_up_when_its_file_has_been_read_and_not_before),
		WITH_FILES(a_read_for_one_that_was_closed_is_nothing_to_the_next_owner_of_the_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
