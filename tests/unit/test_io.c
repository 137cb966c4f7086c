/* test_io.c - every mechanism does what io/io.h promises. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "io/io.h"
#include "tests/unit/check.h"
#include "tests/unit/comes_up.h"

enum { LONG_MS = 10000, SHORT_MS = 20, PAIRS = 600 };

static io_loop *loop;
static int mine, peer; /* a socket pair; mine is adopted and wanted for reading */
static char cookie;
static char buffer[1 << 16];

static void make_pair(int *a, int *b) {
	int end[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end), 0);
	*a = end[0];
	*b = end[1];
}

static int set_up(void **state) {
	(void)state;
	loop = io_loop_new();
	make_pair(&mine, &peer);
	assert_int_equal(io_fd(loop, mine, &cookie), 0);
	assert_int_equal(io_wantread(loop, mine), 0);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	if (io_cookie(loop, mine)) io_close(loop, mine);
	close(peer);
	io_loop_free(loop);
	return 0;
}

/* --- readiness --- */

static void assert_readable(int fd) { assert_true(comes_up(loop, io_canread, fd, LONG_MS)); }
static void assert_writable(int fd) { assert_true(comes_up(loop, io_canwrite, fd, LONG_MS)); }
static void assert_silent(int fd) {
	assert_false(comes_up(loop, io_canread, fd, SHORT_MS));
	assert_false(comes_up(loop, io_canwrite, fd, 0));
}

static void say(int fd, const char *text) { assert_int_equal(write(fd, text, strlen(text)), strlen(text)); }

static void drain(int fd) {
	while (io_tryread(loop, fd, buffer, sizeof buffer) > 0) {}
	assert_int_equal(errno, EAGAIN);
}

static void fill(int fd) {
	while (io_trywrite(loop, fd, buffer, sizeof buffer) > 0) {}
	assert_int_equal(errno, EAGAIN);
}

/* Wants to write to a full socket. Readiness is a hint, so it may come up once although nothing can be written. */
static void wait_for_room(int fd) {
	assert_int_equal(io_wantwrite(loop, fd), 0);
	if (comes_up(loop, io_canwrite, fd, 0)) fill(fd);
	assert_false(comes_up(loop, io_canwrite, fd, 0));
}

static void swallow(int fd) {
	while (read(fd, buffer, sizeof buffer) > 0) {}
}

/* --- adopting --- */

static void a_descriptor_is_adopted_once(void **state) {
	(void)state;
	char other;
	assert_int_equal(io_fd(loop, mine, &other), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(io_fd(loop, -1, &other), -1);
	assert_int_equal(errno, EBADF);
	assert_ptr_equal(io_cookie(loop, mine), &cookie);
	assert_null(io_cookie(loop, peer));
	assert_null(io_cookie(loop, -1));
	assert_null(io_cookie(loop, 1 << 20));
	assert_true(io_fd_bound(loop) > mine);
	for (int fd = 0; fd < io_fd_bound(loop); fd++) assert_true(fd == mine || !io_cookie(loop, fd));
}

static void closing_forgets_the_descriptor(void **state) {
	(void)state;
	io_close(loop, mine);
	assert_null(io_cookie(loop, mine));
	assert_int_equal(read(peer, buffer, 1), 0);
	assert_silent(mine);
}

/* For io_uring: an operation of the kernel keeps the socket open, until it is cancelled and the loop waits again. */
static void closing_a_descriptor_that_is_watched_closes_it(void **state) {
	(void)state;
	fill(mine);
	wait_for_room(mine);
	drain(mine);
	assert_int_equal(io_wait(loop, 0), 0);
	io_close(loop, mine);
	for (int waits = 0; read(peer, buffer, sizeof buffer) != 0; waits++) {
		assert_true(waits < LONG_MS);
		assert_int_equal(io_wait(loop, 1), 0);
	}
}

static void a_fresh_descriptor_is_taken_for_ready_and_comes_up_when_wanted(void **state) {
	(void)state;
	assert_readable(mine);
	assert_false(comes_up(loop, io_canwrite, mine, 0));
	assert_int_equal(io_wantwrite(loop, mine), 0);
	assert_writable(mine);
}

static void what_is_not_wanted_does_not_come_up(void **state) {
	(void)state;
	drain(mine);
	io_dontwantread(loop, mine);
	say(peer, "x");
	assert_silent(mine);
	io_wantread(loop, mine);
	assert_readable(mine);
}

/* --- reading --- */

static void what_comes_after_eagain_is_reported(void **state) {
	(void)state;
	for (int i = 0; i < 100; i++) {
		drain(mine);
		assert_false(comes_up(loop, io_canread, mine, 0));
		say(peer, "x");
		assert_readable(mine);
	}
}

static void what_came_before_the_kernel_was_told_is_reported(void **state) {
	(void)state;
	io_dontwantread(loop, mine);
	drain(mine);
	say(peer, "x");
	io_wantread(loop, mine);
	assert_readable(mine);
}

static void what_is_not_used_up_comes_up_once_a_turn(void **state) {
	(void)state;
	drain(mine);
	say(peer, "xyz");
	for (int i = 0; i < 3; i++) {
		int times = 0;
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		for (int fd; (fd = io_canread(loop)) != -1;) times += fd == mine;
		assert_int_equal(times, 1);
		assert_int_equal(io_tryread(loop, mine, buffer, 1), 1);
	}
	assert_readable(mine); /* after a full read there may be more */
	drain(mine);
	assert_silent(mine);
}

static void a_short_read_proves_the_socket_empty(void **state) {
	(void)state;
	drain(mine);
	say(peer, "x");
	assert_readable(mine);
	assert_int_equal(io_tryread(loop, mine, buffer, 2), 1);
	assert_silent(mine);
	say(peer, "x");
	assert_readable(mine);
}

static void what_comes_between_the_report_and_a_short_read_is_not_lost(void **state) {
	(void)state;
	drain(mine);
	say(peer, "a");
	assert_readable(mine);
	assert_int_equal(io_tryread(loop, mine, buffer, 1), 1);
	say(peer, "b");
	assert_readable(mine);
	assert_int_equal(io_tryread(loop, mine, buffer, 2), 1);
	say(peer, "c");
	assert_readable(mine);
}

/* For io_uring: the ring of completions overflows with those of descriptors that are closed immediately. */
static void bytes_stay_in_order_however_much_is_reported_in_one_turn(void **state) {
	(void)state;
	enum { CLOSED = 2500 };
	drain(mine);
	assert_int_equal(io_wait(loop, 0), 0);
	for (int i = 0; i < CLOSED; i++) {
		int end[2];
		if (i == CLOSED - 10) say(peer, "a");
		assert_int_equal(pipe2(end, O_NONBLOCK), 0);
		assert_int_equal(io_fd(loop, end[1], &cookie), 0);
		assert_int_equal(io_wantwrite(loop, end[1]), 0);
		assert_int_equal(io_eagain_write(loop, end[1]), 0);
		io_close(loop, end[1]);
		close(end[0]);
	}
	say(peer, "b");
	for (const char *expected = "ab"; *expected; expected++) {
		assert_int_equal(io_tryread(loop, mine, buffer, 1), 1);
		assert_int_equal(buffer[0], *expected);
	}
}

static void the_end_is_reported_and_again_until_it_is_read(void **state) {
	(void)state;
	drain(mine);
	say(peer, "last");
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	assert_readable(mine);
	assert_int_equal(io_tryread(loop, mine, buffer, sizeof buffer), 4);
	assert_readable(mine);
	assert_int_equal(io_tryread(loop, mine, buffer, sizeof buffer), 0);
	assert_readable(mine);
}

static void an_end_that_comes_later_is_reported(void **state) {
	(void)state;
	drain(mine);
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	assert_readable(mine);
	assert_int_equal(io_tryread(loop, mine, buffer, sizeof buffer), 0);
}

static void a_pipe_is_as_good_as_a_socket(void **state) {
	(void)state;
	int end[2];
	assert_int_equal(pipe2(end, O_NONBLOCK), 0);
	assert_int_equal(io_fd(loop, end[0], &cookie), 0);
	assert_int_equal(io_wantread(loop, end[0]), 0);
	drain(end[0]);
	say(end[1], "x");
	assert_readable(end[0]);
	drain(end[0]);
	close(end[1]);
	assert_readable(end[0]);
	assert_int_equal(io_tryread(loop, end[0], buffer, 1), 0);
	io_close(loop, end[0]);
}

static void a_pipe_may_be_written_to_and_says_when_its_reader_is_gone(void **state) {
	(void)state;
	int end[2];
	const struct iovec part[2] = {{.iov_base = buffer, .iov_len = 2}, {.iov_base = buffer, .iov_len = 3}};
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(end, O_NONBLOCK), 0);
	assert_int_equal(io_fd(loop, end[1], &cookie), 0);
	assert_int_equal(io_trywritev(loop, end[1], part, 2, IO_LAST), 5);
	fill(end[1]);
	wait_for_room(end[1]);
	close(end[0]);
	assert_writable(end[1]);
	assert_int_equal(io_trywrite(loop, end[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	io_close(loop, end[1]);
}

/* --- writing --- */

static void room_in_a_full_socket_is_reported(void **state) {
	(void)state;
	for (int i = 0; i < 3; i++) {
		io_dontwantwrite(loop, mine);
		fill(mine);
		wait_for_room(mine);
		swallow(peer);
		assert_writable(mine);
	}
}

static void room_is_reported_though_the_peer_sends_no_more(void **state) {
	(void)state;
	fill(mine);
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	wait_for_room(mine);
	swallow(peer);
	assert_writable(mine);
}

static void both_directions_are_reported_side_by_side(void **state) {
	(void)state;
	fill(mine);
	drain(mine);
	wait_for_room(mine);
	assert_silent(mine);
	say(peer, "x");
	assert_readable(mine);
	swallow(peer);
	assert_writable(mine);
}

static void what_is_ready_and_not_wanted_any_more_does_not_end_waiting(void **state) {
	(void)state;
	fill(mine);
	drain(mine);
	wait_for_room(mine);
	swallow(peer);
	assert_writable(mine);
	io_dontwantwrite(loop, mine);
	assert_int_equal(io_wait(loop, 0), 0);
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, SHORT_MS), 0);
	assert_true(io_now(loop) - before >= SHORT_MS);
}

static void a_socket_that_a_file_has_filled_is_not_ready(void **state) {
	(void)state;
	char name[] = "/tmp/gatling-io-XXXXXX";
	int file = mkstemp(name), times = 0;
	unlink(name);
	assert_int_equal(write(file, buffer, sizeof buffer), sizeof buffer);
	assert_int_equal(io_wantwrite(loop, mine), 0);
	do { /* readiness is a hint, so it may come up once although nothing can be written */
		assert_true(++times <= 2);
		while (io_sendfile(loop, mine, NULL, 0, file, 0, sizeof buffer) > 0) {}
		assert_int_equal(errno, EAGAIN);
	} while (comes_up(loop, io_canwrite, mine, 0));
	swallow(peer);
	assert_writable(mine);
	close(file);
}

static void a_writer_hears_that_its_peer_is_gone(void **state) {
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	fill(mine);
	wait_for_room(mine);
	close(peer);
	assert_writable(mine);
	assert_int_equal(io_trywrite(loop, mine, "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	peer = dup(mine);
}

/* --- TCP --- */

static int listener(struct sockaddr_in *address) {
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)address, length), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
	return fd;
}

static int begin_connect(const struct sockaddr_in *address) {
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(io_fd(loop, fd, &cookie), 0);
	if (connect(fd, (const struct sockaddr *)address, sizeof *address) == -1) {
		assert_int_equal(errno, EINPROGRESS);
		assert_int_equal(io_eagain_write(loop, fd), 0);
	}
	assert_int_equal(io_wantwrite(loop, fd), 0);
	return fd;
}

static int outcome(int fd) {
	int error = -1;
	socklen_t length = sizeof error;
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
	return error;
}

static void a_connection_is_made_accepted_and_reset(void **state) {
	(void)state;
	struct sockaddr_in address, from;
	socklen_t length = sizeof from;
	int listening = listener(&address);
	assert_int_equal(io_fd(loop, listening, &cookie), 0);
	io_wantread(loop, listening);
	assert_int_equal(io_accept(loop, listening, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);

	int client = begin_connect(&address);
	assert_readable(listening);
	int served = io_accept(loop, listening, (struct sockaddr *)&from, &length);
	assert_true(served != -1 && from.sin_family == AF_INET);
	assert_true(fcntl(served, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(served, F_GETFD) & FD_CLOEXEC);
	assert_writable(client);
	assert_int_equal(outcome(client), 0);

	assert_int_equal(io_wantread(loop, client), 0);
	drain(client);
	const struct linger at_once = {.l_onoff = 1};
	setsockopt(served, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(served);
	assert_readable(client);
	assert_int_equal(io_tryread(loop, client, buffer, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	io_close(loop, client);
	io_close(loop, listening);
}

static void a_refused_connection_is_reported(void **state) {
	(void)state;
	struct sockaddr_in address;
	close(listener(&address));
	int client = begin_connect(&address);
	assert_writable(client);
	assert_int_equal(outcome(client), ECONNREFUSED);
	io_close(loop, client);
}

/* --- many --- */

static int many[PAIRS][2];

static void make_many(void) {
	for (int i = 0; i < PAIRS; i++) {
		make_pair(&many[i][0], &many[i][1]);
		assert_int_equal(io_fd(loop, many[i][0], &cookie), 0);
		assert_int_equal(io_wantread(loop, many[i][0]), 0);
		drain(many[i][0]);
	}
}

static void close_many(void) {
	for (int i = 0; i < PAIRS; i++) {
		io_close(loop, many[i][0]);
		close(many[i][1]);
	}
}

/* Waits until each has come up, once, in as many turns as it takes. */
static void assert_all_come_up(void) {
	static bool up[1 << 16];
	int left = PAIRS;
	memset(up, 0, sizeof up);
	while (left) {
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		int before = left;
		for (int fd; (fd = io_canread(loop)) != -1;) {
			if (fd == mine) continue;
			assert_false(up[fd]);
			up[fd] = true;
			drain(fd);
			left--;
		}
		assert_true(left < before);
	}
}

static void of_many_descriptors_each_that_is_ready_comes_up(void **state) {
	(void)state;
	drain(mine);
	make_many();
	for (int i = 0; i < PAIRS; i++) say(many[i][1], "x");
	assert_all_come_up();
	assert_int_equal(io_wait(loop, 0), 0);
	assert_int_equal(io_canread(loop), -1);
	close_many();
}

static void those_that_are_closed_among_many_do_not_disturb_the_others(void **state) {
	(void)state;
	drain(mine);
	make_many();
	for (int i = 0; i < PAIRS; i += 2) io_close(loop, many[i][0]);
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < PAIRS; i += 2) {
			say(many[i][1], "x");
			assert_readable(many[i][0]);
			drain(many[i][0]);
		}
	}
	for (int i = 0; i < PAIRS; i++) {
		if (i % 2) io_close(loop, many[i][0]);
		close(many[i][1]);
	}
}

/* For SIGIO: the queue of signals is shorter than the number of events. */
static void a_kernel_queue_that_overflows_loses_nothing(void **state) {
	(void)state;
	struct rlimit before, few;
	assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	drain(mine);
	make_many();
	few = before;
	few.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &few), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < PAIRS; i++) say(many[i][1], "x");
		assert_all_come_up();
	}
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &before), 0);
	for (int i = 0; i < PAIRS; i++) say(many[i][1], "x");
	assert_all_come_up();
	close_many();
}

static void one_that_is_always_ready_does_not_keep_others_waiting(void **state) {
	(void)state;
	int a, b;
	make_pair(&a, &b);
	assert_int_equal(io_fd(loop, a, &cookie), 0);
	io_wantread(loop, a);
	drain(a);
	say(peer, "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
	say(b, "x");
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	bool both[2] = {false, false};
	for (int fd; (fd = io_canread(loop)) != -1;) {
		both[fd == a] = true;
		assert_int_equal(io_tryread(loop, fd, buffer, 1), 1);
	}
	assert_true(both[0] && both[1]);
	io_close(loop, a);
	close(b);
}

/* Turns end after the first descriptor: however many there are, they come one at a time. */
static void what_is_postponed_comes_after_all_others_and_in_its_order(void **state) {
	(void)state;
	int order[PAIRS], postponed = 0, late;
	drain(mine);
	make_many();
	for (int i = 0; i < PAIRS; i++) say(many[i][1], "x");
	while (postponed < PAIRS - 1) {
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		for (int fd; (fd = io_canread(loop)) != -1;) {
			if (io_postpone_read(loop, fd)) order[postponed++] = fd;
			else drain(fd); /* it is the only one so far */
		}
	}
	for (int i = 0; i < postponed; i++) {
		say(peer, "x");
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		late = io_canread(loop);
		assert_int_equal(late, mine);
		drain(mine);
		assert_int_equal(io_canread(loop), -1);
		if (i % 2 == 0) continue;
		for (int j = i - 1; j <= i; j++) {
			assert_int_equal(io_postponed_read(loop), order[j]);
			drain(order[j]);
		}
	}
	while (io_postponed_read(loop) != -1) {}
	assert_silent(mine);
	close_many();
}

/* However many the mechanism reports at a time. */
static void all_that_is_ready_comes_in_one_turn_before_what_is_postponed(void **state) {
	(void)state;
	if (strcmp(io_mechanism(), "kqueue") == 0) skip(); /* tests/kqueue never fills the array of events */
	drain(mine);
	make_many();
	int postponed = -1;
	while (postponed == -1) {
		say(many[0][1], "x");
		say(many[1][1], "x");
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		for (int fd; (fd = io_canread(loop)) != -1;) {
			if (postponed == -1 && io_postpone_read(loop, fd)) postponed = fd;
			else drain(fd);
		}
	}
	for (int turn = 0; turn < 3; turn++) {
		int up = 0;
		for (int i = 2; i < PAIRS; i++) say(many[i][1], "x");
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		for (int fd; (fd = io_canread(loop)) != -1; drain(fd)) up += fd != postponed;
		assert_true(up >= PAIRS - 2);
	}
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	assert_true(io_now(loop) - before < LONG_MS / 2);
	assert_int_equal(io_postponed_read(loop), postponed);
	close_many();
}

static void what_was_handed_out_before_a_postponed_one_comes_up_again(void **state) {
	(void)state;
	int a, b, first;
	make_pair(&a, &b);
	assert_int_equal(io_fd(loop, a, &cookie), 0);
	io_wantread(loop, a);
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	assert_true(io_postpone_read(loop, first = io_canread(loop)));
	assert_int_equal(io_canread(loop), first == a ? mine : a);
	assert_int_equal(io_postponed_read(loop), first); /* the turn ended early */
	assert_readable(first == a ? mine : a);
	io_close(loop, a);
	close(b);
}

static void nothing_is_postponed_behind_nobody(void **state) {
	(void)state;
	say(peer, "x");
	assert_readable(mine);
	assert_false(io_postpone_read(loop, mine));
	assert_readable(mine);
}

static void what_is_postponed_and_closed_does_not_come_up(void **state) {
	(void)state;
	int a, b;
	make_pair(&a, &b);
	assert_int_equal(io_fd(loop, a, &cookie), 0);
	io_wantread(loop, a);
	say(peer, "x");
	say(b, "x");
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	int first = io_canread(loop);
	assert_true(io_postpone_read(loop, first));
	assert_int_not_equal(io_canread(loop), -1);
	if (first == a) io_close(loop, a);
	else io_dontwantread(loop, mine);
	assert_int_equal(io_postponed_read(loop), -1);
	assert_int_equal(io_wait(loop, 0), 0);
	assert_int_equal(io_postponed_read(loop), -1);
	if (first != a) io_close(loop, a);
	close(b);
}

static void a_number_used_again_is_not_postponed(void **state) {
	(void)state;
	drain(mine);
	make_many();
	for (int i = 0; i < PAIRS; i++) say(many[i][1], "x");
	int fd = -1;
	for (int got; fd == -1;) {
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		while ((got = io_canread(loop)) != -1) fd = io_postpone_read(loop, got) ? got : fd;
	}
	int i = 0;
	while (many[i][0] != fd) i++;
	int again[2];
	close(many[i][1]);
	io_close(loop, fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, again), 0);
	if (again[0] != fd) {
		assert_int_equal(dup2(again[0], fd), fd);
		close(again[0]);
	}
	many[i][0] = fd;
	many[i][1] = again[1];
	assert_int_equal(io_fd(loop, fd, &cookie), 0);
	io_wantread(loop, fd);
	assert_readable(fd);
	close_many();
}

static void one_closed_while_others_are_handed_out_does_not_come_up(void **state) {
	(void)state;
	int a, b;
	make_pair(&a, &b);
	assert_int_equal(io_fd(loop, a, &cookie), 0);
	io_wantread(loop, a);
	assert_int_equal(io_wait(loop, 0), 0);
	int first = io_canread(loop), other = first == a ? mine : a;
	io_close(loop, other);
	assert_int_equal(io_canread(loop), -1);
	/* nor does a new descriptor with this number that is not wanted */
	assert_int_equal(dup2(b, other), other);
	assert_int_equal(io_fd(loop, other, &cookie), 0);
	drain(first);
	assert_silent(other);
	io_wantread(loop, other);
	assert_readable(other);
	io_close(loop, a);
	close(b);
}

/* Closes mine, and lets a new socket with the same number come up. */
static void use_number_again(void) {
	int number = mine;
	io_close(loop, mine);
	close(peer);
	make_pair(&mine, &peer);
	assert_int_equal(mine, number);
	assert_int_equal(io_fd(loop, mine, &cookie), 0);
	io_wantread(loop, mine);
	drain(mine);
	say(peer, "x");
	assert_readable(mine);
}

static void a_number_used_again_is_told_to_the_kernel_again(void **state) {
	(void)state;
	for (int i = 0; i < 100; i++) {
		drain(mine);
		use_number_again();
	}
}

static void a_number_used_again_does_not_inherit_the_end(void **state) {
	(void)state;
	drain(mine);
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	assert_readable(mine);
	use_number_again();
	assert_int_equal(io_tryread(loop, mine, buffer, 2), 1); /* this proves that the socket is empty */
	assert_silent(mine);
}

/* --- waiting --- */

static void a_closed_descriptor_never_times_out(void **state) {
	(void)state;
	int fd = open("/dev/null", O_RDONLY);
	drain(mine); /* otherwise nothing waits */
	assert_int_equal(io_fd(loop, fd, &fd), 0);
	io_timeout(loop, fd, io_now(loop) + 1);
	io_close(loop, fd);
	assert_int_equal(io_wait(loop, 3 * IO_TICK_MS), 0);
	assert_int_equal(io_timedout(loop), -1);
}

static void a_deadline_that_has_passed_is_reported_though_it_is_set_again(void **state) {
	(void)state;
	int64_t deadline = io_now(loop) + 1;
	drain(mine);
	io_timeout(loop, mine, deadline);
	assert_int_equal(io_wait(loop, 3 * IO_TICK_MS), 0);
	io_timeout(loop, mine, deadline); /* as a client does that reads before it handles deadlines */
	assert_int_equal(io_timedout(loop), mine);
	io_timeout(loop, mine, deadline);
	assert_int_equal(io_wait(loop, 3 * IO_TICK_MS), 0);
	io_timeout(loop, mine, io_now(loop) + 1000); /* the deadline has been moved */
	assert_int_equal(io_timedout(loop), -1);
	io_timeout(loop, mine, 0);
}

/* Waiting without a limit ends with the first deadline, also if it was set last, and earlier ones were cancelled. */
static void the_first_deadline_ends_waiting(void **state) {
	(void)state;
	enum { FAR_MS = 20000, NEAR_MS = 150, LATE_MS = 5000 };
	int other = open("/dev/null", O_RDONLY);
	int64_t before = io_now(loop);
	drain(mine);
	assert_int_equal(io_fd(loop, other, &other), 0);
	io_timeout(loop, mine, before + FAR_MS);
	assert_int_equal(io_wait(loop, 0), 0);
	io_timeout(loop, other, before + NEAR_MS);
	assert_int_equal(io_wait(loop, 0), 0);
	io_timeout(loop, other, 0);
	assert_int_equal(io_wait(loop, 0), 0);
	io_timeout(loop, other, io_now(loop) + NEAR_MS);
	int out;
	do assert_int_equal(io_wait(loop, -1), 0);
	while ((out = io_timedout(loop)) == -1);
	assert_int_equal(out, other);
	assert_true(io_now(loop) - before < LATE_MS);
	io_timeout(loop, mine, 0);
	io_close(loop, other);
}

static void a_deadline_ends_a_wait_that_would_take_longer(void **state) {
	(void)state;
	drain(mine);
	int64_t before = io_now(loop);
	io_timeout(loop, mine, before + SHORT_MS);
	while (io_timedout(loop) == -1) assert_int_equal(io_wait(loop, LONG_MS), 0);
	assert_true(io_now(loop) - before < LONG_MS / 2);
}

static void waiting_ends_after_its_time(void **state) {
	(void)state;
	drain(mine);
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, 30), 0);
	assert_true(io_now(loop) - before >= 30);
	assert_int_equal(io_canread(loop), -1);
}

static void waiting_until_a_moment_ends_soon_after_it(void **state) {
	(void)state;
	drain(mine);
	int64_t least_late = INT64_MAX, precision = strcmp(io_mechanism(), "poll") == 0 ? 1000000 : 0;
	for (int i = 0; i < 20; i++) {
		int64_t deadline = io_now_ns(loop) + 300000;
		assert_int_equal(io_waituntil(loop, deadline), 0);
		int64_t late = io_now_ns(loop) - deadline;
		assert_true(late >= 0);
		if (late < least_late) least_late = late;
		assert_int_equal(io_waituntil(loop, deadline), 0); /* it has passed */
	}
	assert_true(least_late < precision + 300000);
	assert_int_equal(io_canread(loop), -1);
}

static bool refuses;

/* As in a container that refuses calls which it does not know. */
int epoll_pwait2(int fd, struct epoll_event *event, int most, const struct timespec *limit, const sigset_t *signals) {
	if (!refuses) return (int)syscall(SYS_epoll_pwait2, fd, event, most, limit, signals, _NSIG / 8);
	errno = EPERM;
	return -1;
}

static void waiting_until_a_moment_does_without_a_call_that_is_refused(void **state) {
	(void)state;
	if (strcmp(io_mechanism(), "kqueue") == 0) skip(); /* tests/kqueue is made of that call */
	drain(mine);
	const int64_t deadline = io_now_ns(loop) + 1300000;
	refuses = true;
	assert_int_equal(io_waituntil(loop, deadline), 0);
	refuses = false;
	assert_true(io_now_ns(loop) >= deadline);
}

static void nothing(int number) { (void)number; }

static void a_signal_ends_waiting_without_an_error(void **state) {
	(void)state;
	struct sigaction action = {.sa_handler = nothing};
	const struct itimerval soon = {.it_value.tv_usec = 10000};
	sigaction(SIGALRM, &action, NULL);
	drain(mine);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	assert_int_equal(io_canread(loop), -1);
}

static void *wake(void *sleeper) {
	io_wake(sleeper);
	return NULL;
}

enum { CALLERS = 3, WAKES = 20000 };

struct caller {
	io_loop *loop;
	atomic_int called;
};

static void *call_often(void *argument) {
	struct caller *c = argument;
	for (int i = 0; i < WAKES; i++) {
		atomic_fetch_add(&c->called, 1);
		io_wake(c->loop);
	}
	return NULL;
}

static void no_wake_is_lost_however_many_come(void **state) {
	(void)state;
	struct caller caller = {.loop = loop};
	pthread_t thread[CALLERS];
	int64_t until = io_now(loop) + 60000;
	for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, call_often, &caller), 0);
	while (atomic_load(&caller.called) < CALLERS * WAKES) {
		assert_int_equal(io_wait(loop, 10000), 0);
		assert_true(io_now(loop) < until);
	}
	for (int i = 0; i < CALLERS; i++) pthread_join(thread[i], NULL);
	io_wait(loop, 0);
	io_wake(loop); /* once more, when nothing else happens */
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, 10000), 0);
	assert_true(io_now(loop) - before < 5000);
}

static void another_thread_wakes_the_loop(void **state) {
	(void)state;
	drain(mine);
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, wake, loop), 0);
		int64_t before = io_now(loop);
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		assert_true(io_now(loop) - before < LONG_MS);
		assert_int_equal(io_canread(loop), -1);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void waking_is_remembered_until_the_next_wait_and_never_blocks(void **state) {
	(void)state;
	drain(mine);
	for (int i = 0; i < 100000; i++) io_wake(loop);
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, SHORT_MS), 0);
	assert_true(io_now(loop) - before >= SHORT_MS);
}

/* A mechanism that collects changes submits them when there are many, and may then receive the wake. */
static void a_wake_that_is_heard_of_between_two_waits_ends_the_next(void **state) {
	(void)state;
	drain(mine);
	io_wake(loop);
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	io_wake(loop);
	make_many();
	drain(mine);
	int64_t before = io_now(loop);
	assert_int_equal(io_wait(loop, LONG_MS), 0);
	assert_true(io_now(loop) - before < LONG_MS / 2);
	assert_true(io_woken(loop));
	close_many();
}

/* --- loops side by side --- */

enum { THREADS = 4, PASSES = 2000 };

static struct ring { int in, out, passed; } ring[THREADS];

/* Passes on each byte that arrives. */
static void *pass_on(void *argument) {
	struct ring *r = argument;
	io_loop *own = io_loop_new();
	char byte;
	io_fd(own, r->in, own);
	io_wantread(own, r->in);
	for (r->passed = 0; r->passed < PASSES && io_wait(own, LONG_MS) == 0;) {
		for (int fd; (fd = io_canread(own)) != -1;) {
			while (r->passed < PASSES && io_tryread(own, fd, &byte, 1) == 1) {
				r->passed++;
				if (write(r->out, &byte, 1) != 1) abort();
			}
		}
	}
	io_loop_free(own);
	return NULL;
}

static void loops_of_several_threads_do_not_disturb_each_other(void **state) {
	(void)state;
	pthread_t thread[THREADS];
	for (int i = 0; i < THREADS; i++) make_pair(&ring[i].out, &ring[(i + 1) % THREADS].in);
	for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, pass_on, &ring[i]), 0);
	say(ring[0].out, "x");
	for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(ring[i].passed, PASSES);
		close(ring[i].in);
		close(ring[i].out);
	}
}

static atomic_int accepted;
static atomic_bool done;

struct sharer {
	int fd;
	_Atomic(io_loop *) loop;
};

static void *accept_some(void *argument) {
	struct sharer *s = argument;
	io_loop *own = io_loop_new();
	io_fd(own, s->fd, own);
	io_wantread(own, s->fd);
	atomic_store(&s->loop, own);
	while (!atomic_load(&done) && io_wait(own, LONG_MS) == 0) {
		while (io_canread(own) != -1) {
			for (int fd; (fd = io_accept(own, s->fd, NULL, NULL)) != -1; close(fd)) atomic_fetch_add(&accepted, 1);
		}
	}
	return own;
}

static void a_listening_socket_may_be_shared_by_loops(void **state) {
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct sockaddr_in address;
		struct sharer sharer[THREADS] = {{.fd = listener(&address)}};
		pthread_t thread[THREADS];
		atomic_store(&accepted, 0);
		atomic_store(&done, false);
		for (int i = 1; i < THREADS; i++) sharer[i].fd = dup(sharer[0].fd);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, accept_some, &sharer[i]), 0);
		for (int i = 1; i <= 10; i++) {
			int client = socket(AF_INET, SOCK_STREAM, 0);
			assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
			for (int ms = 0; atomic_load(&accepted) < i; ms++) {
				assert_true(ms < LONG_MS);
				usleep(1000);
			}
			close(client);
		}
		atomic_store(&done, true);
		for (int i = 0; i < THREADS; i++) {
			void *own;
			while (!atomic_load(&sharer[i].loop)) usleep(1000);
			io_wake(sharer[i].loop);
			assert_int_equal(pthread_join(thread[i], &own), 0);
			io_loop_free(own);
			close(sharer[i].fd);
		}
	}
}

static void a_loop_that_is_busy_leaves_connections_to_those_that_share_the_socket(void **state) {
	(void)state;
	struct sockaddr_in address;
	int fd = listener(&address);
	struct sharer sharer = {.fd = dup(fd)};
	pthread_t thread;
	void *own;
	assert_int_equal(io_fd(loop, fd, &cookie), 0);
	assert_int_equal(io_wantread(loop, fd), 0);
	assert_int_equal(io_accept(loop, fd, NULL, NULL), -1); /* now the mechanism watches it */
	atomic_store(&accepted, 0);
	atomic_store(&done, false);
	assert_int_equal(pthread_create(&thread, NULL, accept_some, &sharer), 0);
	usleep(250000); /* a mechanism that looks by itself has found nothing */
	for (int i = 1; i <= 3; i++) {
		int client = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
		for (int ms = 0; atomic_load(&accepted) < i; ms++) {
			assert_true(ms < LONG_MS / 2);
			usleep(1000);
		}
		close(client);
	}
	atomic_store(&done, true);
	io_wake(sharer.loop);
	assert_int_equal(pthread_join(thread, &own), 0);
	io_loop_free(own);
	close(sharer.fd);
	io_close(loop, fd);
}

static int64_t clock_ms(void) { return io_read_clock() / 1000000; }

/* Has the mechanism watch the socket, and accepts nothing. */
static void *accept_none(void *argument) {
	struct sharer *s = argument;
	io_loop *own = io_loop_new();
	io_fd(own, s->fd, own);
	io_wantread(own, s->fd);
	(void)io_accept(own, s->fd, NULL, NULL);
	io_dontwantread(own, s->fd);
	atomic_store(&s->loop, own);
	while (!atomic_load(&done) && io_wait(own, LONG_MS) == 0) {}
	return own;
}

/* For SIGIO: the other loop alone is told of connections, and there is always a signal. */
static void a_loop_without_rest_hears_of_connections_to_a_socket_that_it_shares(void **state) {
	(void)state;
	struct sockaddr_in address;
	int fd = listener(&address), client = socket(AF_INET, SOCK_STREAM, 0);
	struct sharer sharer = {.fd = dup(fd)};
	pthread_t thread;
	void *own;
	int accepted_fd = -1;
	atomic_store(&done, false);
	assert_int_equal(pthread_create(&thread, NULL, accept_none, &sharer), 0);
	while (!atomic_load(&sharer.loop)) usleep(1000);
	assert_int_equal(io_wait(loop, 0), 0); /* the signals of tests before, which may be of this number */
	assert_int_equal(io_fd(loop, fd, &cookie), 0);
	assert_int_equal(io_wantread(loop, fd), 0);
	assert_int_equal(io_accept(loop, fd, NULL, NULL), -1);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
	for (int64_t until_ms = clock_ms() + LONG_MS; accepted_fd == -1 && clock_ms() < until_ms;) {
		drain(mine);
		say(peer, "x");
		assert_int_equal(io_wait(loop, LONG_MS), 0);
		for (int got; (got = io_canread(loop)) != -1;)
			if (got == fd) accepted_fd = io_accept(loop, fd, NULL, NULL);
	}
	assert_int_not_equal(accepted_fd, -1);
	close(accepted_fd);
	atomic_store(&done, true);
	io_wake(sharer.loop);
	assert_int_equal(pthread_join(thread, &own), 0);
	io_loop_free(own);
	close(sharer.fd);
	close(client);
	io_close(loop, fd);
}

static void a_listening_socket_that_is_closed_is_not_heard_of_though_others_have_it(void **state) {
	(void)state;
	enum { CLIENTS = 10 };
	struct sockaddr_in address;
	int fd = listener(&address), other = dup(fd), client[CLIENTS], early = 0;
	assert_int_equal(io_fd(loop, fd, &address), 0);
	assert_int_equal(io_wantread(loop, fd), 0);
	assert_int_equal(io_accept(loop, fd, NULL, NULL), -1); /* now the mechanism watches it */
	drain(mine);
	io_close(loop, fd);
	for (int i = 0; i < CLIENTS; i++) {
		client[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(client[i], (struct sockaddr *)&address, sizeof address), 0);
		int64_t begun_ms = clock_ms();
		assert_int_equal(io_wait(loop, SHORT_MS), 0);
		early += clock_ms() - begun_ms < SHORT_MS / 2;
		assert_int_equal(io_canread(loop), -1);
	}
	assert_true(early < CLIENTS / 2); /* a mechanism may still get an event of the forgotten socket */
	for (int i = 0; i < CLIENTS; i++) close(client[i]);
	close(other);
}

int main(void) {
#define IN_LOOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_LOOP(a_descriptor_is_adopted_once),
		IN_LOOP(closing_forgets_the_descriptor),
		IN_LOOP(closing_a_descriptor_that_is_watched_closes_it),
		IN_LOOP(a_fresh_descriptor_is_taken_for_ready_and_comes_up_when_wanted),
		IN_LOOP(what_is_not_wanted_does_not_come_up),
		IN_LOOP(what_comes_after_eagain_is_reported),
		IN_LOOP(what_came_before_the_kernel_was_told_is_reported),
		IN_LOOP(what_is_not_used_up_comes_up_once_a_turn),
		IN_LOOP(a_short_read_proves_the_socket_empty),
		IN_LOOP(what_comes_between_the_report_and_a_short_read_is_not_lost),
		IN_LOOP(bytes_stay_in_order_however_much_is_reported_in_one_turn),
		IN_LOOP(the_end_is_reported_and_again_until_it_is_read),
		IN_LOOP(an_end_that_comes_later_is_reported),
		IN_LOOP(a_pipe_is_as_good_as_a_socket),
		IN_LOOP(a_pipe_may_be_written_to_and_says_when_its_reader_is_gone),
		IN_LOOP(room_in_a_full_socket_is_reported),
		IN_LOOP(room_is_reported_though_the_peer_sends_no_more),
		IN_LOOP(both_directions_are_reported_side_by_side),
		IN_LOOP(what_is_ready_and_not_wanted_any_more_does_not_end_waiting),
		IN_LOOP(a_socket_that_a_file_has_filled_is_not_ready),
		IN_LOOP(a_writer_hears_that_its_peer_is_gone),
		IN_LOOP(a_connection_is_made_accepted_and_reset),
		IN_LOOP(a_refused_connection_is_reported),
		IN_LOOP(of_many_descriptors_each_that_is_ready_comes_up),
		IN_LOOP(those_that_are_closed_among_many_do_not_disturb_the_others),
		IN_LOOP(a_kernel_queue_that_overflows_loses_nothing),
		IN_LOOP(one_that_is_always_ready_does_not_keep_others_waiting),
		IN_LOOP(what_is_postponed_comes_after_all_others_and_in_its_order),
		IN_LOOP(all_that_is_ready_comes_in_one_turn_before_what_is_postponed),
		IN_LOOP(what_was_handed_out_before_a_postponed_one_comes_up_again),
		IN_LOOP(nothing_is_postponed_behind_nobody),
		IN_LOOP(what_is_postponed_and_closed_does_not_come_up),
		IN_LOOP(a_number_used_again_is_not_postponed),
		IN_LOOP(one_closed_while_others_are_handed_out_does_not_come_up),
		IN_LOOP(a_number_used_again_is_told_to_the_kernel_again),
		IN_LOOP(a_number_used_again_does_not_inherit_the_end),
		IN_LOOP(a_closed_descriptor_never_times_out),
		IN_LOOP(a_deadline_that_has_passed_is_reported_though_it_is_set_again),
		IN_LOOP(the_first_deadline_ends_waiting),
		IN_LOOP(a_deadline_ends_a_wait_that_would_take_longer),
		IN_LOOP(waiting_ends_after_its_time),
		IN_LOOP(waiting_until_a_moment_ends_soon_after_it),
		IN_LOOP(waiting_until_a_moment_does_without_a_call_that_is_refused),
		IN_LOOP(a_signal_ends_waiting_without_an_error),
		IN_LOOP(another_thread_wakes_the_loop),
		IN_LOOP(no_wake_is_lost_however_many_come),
		IN_LOOP(waking_is_remembered_until_the_next_wait_and_never_blocks),
		IN_LOOP(a_wake_that_is_heard_of_between_two_waits_ends_the_next),
		cmocka_unit_test(loops_of_several_threads_do_not_disturb_each_other),
		cmocka_unit_test(a_listening_socket_may_be_shared_by_loops),
		IN_LOOP(a_loop_that_is_busy_leaves_connections_to_those_that_share_the_socket),
		IN_LOOP(a_loop_without_rest_hears_of_connections_to_a_socket_that_it_shares),
		IN_LOOP(a_listening_socket_that_is_closed_is_not_heard_of_though_others_have_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
