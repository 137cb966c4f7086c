/* test_splice.c - bytes spliced from one socket to another (io_splice()), with every mechanism. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "io/io.h"
#include "tests/unit/check.h"

enum { WAIT_MS = 10000, PIECE = 100 * 1000 };

static io_loop *loop;
static int from, source; /* a socket pair: the loop reads from `from` what was written to source */
static int to, sink;
static char cookie, buffer[2 * PIECE];
static unsigned put, got; /* bytes so far */

/* Returns the byte at that place of the content. */
static char byte_at(unsigned place) { return (char)(place * 2654435761U >> 16); }

static void make_pair(int *adopted, int *other) {
	int end[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end), 0);
	assert_int_equal(io_fd(loop, end[0], &cookie), 0);
	*adopted = end[0];
	*other = end[1];
}

static int set_up(void **state) {
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	loop = io_loop_new();
	make_pair(&from, &source);
	make_pair(&to, &sink);
	assert_int_equal(io_wantread(loop, from), 0);
	put = got = 0;
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	io_close(loop, from);
	io_close(loop, to);
	close(source);
	close(sink);
	io_loop_free(loop);
	return 0;
}

/* Writes content, as much as there is room for. */
static void put_some(void) {
	static char content[PIECE];
	for (unsigned i = 0; i < PIECE; i++) content[i] = byte_at(put + i);
	ssize_t n = write(source, content, PIECE);
	if (n > 0) put += (unsigned)n;
}

static void wait_for_some(void) {
	do assert_int_equal(io_wait(loop, WAIT_MS), 0);
	while (io_canread(loop) != from);
}

/* Returns how many bytes were spliced, at least one; *sent is that of io_splice(). */
static size_t splice_some(size_t *sent) {
	ssize_t n;
	while ((n = io_splice(loop, from, to, buffer, sizeof buffer, sent)) == -1 && errno == EAGAIN) wait_for_some();
	assert_in_range(n, 1, sizeof buffer);
	assert_in_range(*sent, 0, n);
	return (size_t)n;
}

static void is_next(const char *bytes, size_t length) {
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != byte_at(got + (unsigned)i)) fail_msg("byte %u", got + (unsigned)i);
	got += (unsigned)length;
}

/* Reads all that has arrived, and checks it. */
static void take_out(void) {
	static char content[PIECE];
	for (ssize_t n; (n = read(sink, content, sizeof content)) > 0;) is_next(content, (size_t)n);
}

static void what_is_spliced_arrives(void **state) {
	(void)state;
	for (int i = 0; i < 100; i++) {
		size_t sent;
		put_some();
		while (got < put) {
			const size_t n = splice_some(&sent);
			take_out();
			is_next(buffer, n - sent);
		}
	}
	assert_true(put > 5 * PIECE);
}

static void what_there_is_no_room_for_is_handed_back_in_order(void **state) {
	(void)state;
	for (int round = 0; round < 3; round++) {
		size_t n, sent;
		do put_some();
		while ((n = splice_some(&sent)) == sent);
		take_out();
		is_next(buffer, n - sent);
	}
}

static void where_nothing_has_come_it_is_waited_for(void **state) {
	(void)state;
	size_t sent = 1;
	assert_int_equal(io_splice(loop, from, to, buffer, sizeof buffer, &sent), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(sent, 0);
	assert_int_equal(io_wait(loop, 0), 0);
	assert_int_equal(io_canread(loop), -1);
	put_some();
	wait_for_some();
	splice_some(&sent);
}

static void the_end_is_told_when_all_has_been_taken(void **state) {
	(void)state;
	size_t sent;
	put_some();
	shutdown(source, SHUT_WR);
	while (got < put) {
		const size_t n = splice_some(&sent);
		take_out();
		is_next(buffer, n - sent);
	}
	assert_int_equal(io_splice(loop, from, to, buffer, sizeof buffer, &sent), 0);
}

static void where_nobody_reads_any_more_all_is_handed_back(void **state) {
	(void)state;
	size_t sent;
	shutdown(sink, SHUT_RD);
	put_some();
	const size_t n = splice_some(&sent);
	assert_int_equal(sent, 0);
	is_next(buffer, n);
	assert_int_equal(io_trywrite(loop, to, "x", 1), -1);
	assert_int_equal(errno, EPIPE);
}

static void no_more_than_was_asked_for_is_taken(void **state) {
	(void)state;
	size_t sent;
	put_some();
	assert_int_equal(io_splice(loop, from, to, buffer, 1000, &sent), 1000);
	take_out();
	is_next(buffer, 1000 - sent);
	assert_int_equal(got, 1000);
}

enum { FILL_MOST = 20 }; /* rounds until a socket is full, at most */

/* Sends as much as io_room() reports, until there is no room. Returns how many times. limit: of unsent bytes; 0: none.
 */
static int fill(int listener, const struct sockaddr_in *address, uint32_t limit) {
	static char content[8 * 1024 * 1024];
	int client = socket(AF_INET, SOCK_STREAM, 0), rounds = 0;
	assert_int_equal(connect(client, (const struct sockaddr *)address, sizeof *address), 0);
	int server = accept(listener, NULL, NULL);
	if (limit) assert_int_equal(setsockopt(server, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof limit), 0);
	for (size_t room; (room = io_room(server)) > 0 && rounds < FILL_MOST; rounds++) {
		if (limit) assert_in_range(room, 1, limit);
		if (room > sizeof content) room = sizeof content;
		assert_int_equal(send(server, content, room, MSG_DONTWAIT), room);
	}
	uint32_t little = 16384; /* fewer than are queued */
	assert_int_equal(setsockopt(server, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &little, sizeof little), 0);
	assert_int_equal(io_room(server), 0);
	close(server);
	close(client);
	return rounds;
}

static void what_a_socket_has_room_for_it_takes(void **state) {
	(void)state;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	int unlimited = fill(listener, &address, 0), limited = fill(listener, &address, 16384);
#ifdef __linux__
	assert_in_range(unlimited, 1, FILL_MOST);
	assert_in_range(limited, 1, FILL_MOST);
#else
	assert_int_equal(unlimited + limited, 0);
#endif
	assert_int_equal(io_room(to), 0); /* a socket of another kind */
	close(listener);
}

int main(void) {
#define IN_LOOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_LOOP(what_is_spliced_arrives),
		IN_LOOP(what_there_is_no_room_for_is_handed_back_in_order),
		IN_LOOP(where_nothing_has_come_it_is_waited_for),
		IN_LOOP(the_end_is_told_when_all_has_been_taken),
		IN_LOOP(where_nobody_reads_any_more_all_is_handed_back),
		IN_LOOP(no_more_than_was_asked_for_is_taken),
		IN_LOOP(what_a_socket_has_room_for_it_takes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
