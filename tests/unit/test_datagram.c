/* test_datagram.c - datagrams arrive with their addresses, marks and bounds, whether or not the system joins them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/datagram.h"
#include "tests/unit/check.h"
#include "tests/unit/comes_up.h"

enum { LONG_MS = 10000, SHORT_MS = 20, CLIENTS = 2 };

static io_loop *loop;
static struct io_received *received;
static const struct io_datagrams *got;
static char content[IO_DATAGRAM_SEGMENTS * 2 * 1000];

/* A server and a client. Both are in the loop, and wanted for reading. */
static int server, client;
static union io_address address; /* of the server, where the client reaches it */

/* --- what the system does: these functions stand before those of the C library --- */

static struct {
	int sent, segmented; /* calls of sendmsg(2), and those with UDP_SEGMENT */
	int segments_error;  /* with which those with UDP_SEGMENT fail */
	int error, after;    /* with which all fail after some */
	bool unknown;        /* getsockopt(2) does not know UDP_SEGMENT */
	int truncated;       /* the message of the next recvmmsg(2) that is, from 1 on */
} system_calls;

ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
	struct msghdr copy = *m;
	bool segmented = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c))
		segmented |= c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT;
	system_calls.sent++;
	system_calls.segmented += segmented;
	errno = segmented && system_calls.segments_error ? system_calls.segments_error
			: system_calls.sent > system_calls.after ? system_calls.error
													 : 0;
	return errno ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *length) {
	if (!system_calls.unknown || level != IPPROTO_UDP || name != UDP_SEGMENT)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, length);
	errno = ENOPROTOOPT;
	return -1;
}

#ifdef __GLIBC__
typedef int flags_of_many;
#else /* musl */
typedef unsigned flags_of_many;
#endif

int recvmmsg(int fd, struct mmsghdr *m, unsigned most, flags_of_many flags, struct timespec *limit) {
	const int n = (int)syscall(SYS_recvmmsg, fd, m, most, flags, limit);
	if (system_calls.truncated && system_calls.truncated <= n) {
		m[system_calls.truncated - 1].msg_hdr.msg_flags |= MSG_TRUNC;
		system_calls.truncated = 0;
	}
	return n;
}

/* --- sockets --- */

static union io_address ipv4(const char *text, uint16_t port) {
	union io_address a = {.ipv4 = {.sin_family = AF_INET, .sin_port = port}};
	assert_int_equal(inet_pton(AF_INET, text, &a.ipv4.sin_addr), 1);
	return a;
}

static union io_address ipv6(const char *text, uint16_t port) {
	union io_address a = {.ipv6 = {.sin6_family = AF_INET6, .sin6_port = port}};
	assert_int_equal(inet_pton(AF_INET6, text, &a.ipv6.sin6_addr), 1);
	return a;
}

static uint16_t port_of(int fd) {
	union io_address a;
	socklen_t length = sizeof a;
	assert_int_equal(getsockname(fd, &a.any, &length), 0);
	return a.ipv4.sin_port; /* in the same place for both */
}

static int adopt(int fd) {
	static char cookie;
	io_datagram_socket(fd);
	assert_int_equal(io_fd(loop, fd, &cookie), 0);
	assert_int_equal(io_wantread(loop, fd), 0);
	return fd;
}

/* Opens a socket. Returns it, or -1 if this machine does not have the address. */
static int open_socket(union io_address a, bool dual) {
	const int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), only = !dual;
	if (fd == -1) return -1;
	if (a.any.sa_family == AF_INET6) assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only), 0);
	if (bind(fd, &a.any, io_address_length(&a)) == 0) return adopt(fd);
	close(fd);
	return -1;
}

enum kind { IPV4, IPV6, IPV4_OF_DUAL, IPV6_OF_DUAL, KINDS };

/* Opens server and client. Returns false if there is no IPv6. */
static bool open_both(enum kind kind) {
	const bool four = kind == IPV4 || kind == IPV4_OF_DUAL;
	server = open_socket(kind == IPV4 ? ipv4("0.0.0.0", 0) : ipv6("::", 0), kind >= IPV4_OF_DUAL);
	client = open_socket(four ? ipv4("127.0.0.1", 0) : ipv6("::1", 0), false);
	if (server != -1 && client != -1) {
		address = four ? ipv4("127.0.0.2", port_of(server)) : ipv6("::1", port_of(server));
		return true;
	}
	assert_true(kind != IPV4);
	if (server != -1) io_close(loop, server);
	if (client != -1) io_close(loop, client);
	return false;
}

static void close_both(void) {
	io_close(loop, server);
	io_close(loop, client);
}

static int set_up(void **state) {
	(void)state;
	memset(&system_calls, 0, sizeof system_calls);
	for (size_t i = 0; i < sizeof content; i++) content[i] = (char)(i * 7 + i / 251);
	loop = io_loop_new();
	received = io_received_new();
	if (!loop || !received) return -1;
	(void)open_both(IPV4);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	if (io_cookie(loop, server)) io_close(loop, server);
	if (io_cookie(loop, client)) io_close(loop, client);
	io_received_free(received);
	io_loop_free(loop);
	return 0;
}

/* --- transfers --- */

static int receive(int fd) { return io_receive(loop, fd, received, &got); }

static int await(int fd) {
	int n;
	do assert_true(comes_up(loop, io_canread, fd, LONG_MS));
	while ((n = receive(fd)) == -1 && errno == EAGAIN);
	return n;
}

static void assert_silent(int fd) {
	(void)comes_up(loop, io_canread, fd, 0); /* readiness is a hint */
	assert_int_equal(receive(fd), -1);
	assert_int_equal(errno, EAGAIN);
	assert_false(comes_up(loop, io_canread, fd, SHORT_MS));
}

static struct io_datagrams to_server(size_t length, size_t segment) {
	return (struct io_datagrams){.peer = address, .bytes = content, .length = length, .segment = segment};
}

static void send_whole(int fd, const struct io_datagrams *d) { assert_int_equal(io_send(loop, fd, d), d->length); }

/* Sends one datagram of the client, of so many bytes. */
static void say(size_t length) {
	const struct io_datagrams d = to_server(length, length);
	send_whole(client, &d);
}

static void assert_same_address(const union io_address *a, const union io_address *b, bool port) {
	assert_int_equal(a->any.sa_family, b->any.sa_family);
	if (port) assert_int_equal(a->ipv4.sin_port, b->ipv4.sin_port);
	if (a->any.sa_family == AF_INET) assert_int_equal(a->ipv4.sin_addr.s_addr, b->ipv4.sin_addr.s_addr);
	else assert_memory_equal(&a->ipv6.sin6_addr, &b->ipv6.sin6_addr, sizeof a->ipv6.sin6_addr);
}

/* Receives all datagrams, and compares them with those that were sent. Returns in how many structures they came. */
static int assert_receives(int fd, const struct io_datagrams *sent) {
	int structures = 0;
	for (size_t done = 0; done < sent->length;) {
		const int n = await(fd);
		assert_true(n > 0);
		structures += n;
		for (int i = 0; i < n; done += got[i++].length) {
			assert_true(got[i].length <= sent->length - done);
			assert_true(got[i].segment == sent->segment ||
						(got[i].segment == got[i].length && done + got[i].length == sent->length));
			assert_true(got[i].length % sent->segment == 0 || done + got[i].length == sent->length);
			assert_memory_equal(got[i].bytes, sent->bytes + done, got[i].length);
		}
	}
	assert_silent(fd);
	return structures;
}

/* --- tests --- */

static void datagrams_carry_the_addresses_of_both_ends(void **state) {
	(void)state;
	close_both();
	for (enum kind kind = IPV4; kind < KINDS; kind++) {
		if (!open_both(kind)) continue;
		const struct io_datagrams asks = to_server(100, 100);
		const char *mapped[] = {"::ffff:127.0.0.1", "::ffff:127.0.0.2"};
		union io_address from = kind == IPV4 ? ipv4("127.0.0.1", 0) : ipv6(kind == IPV4_OF_DUAL ? mapped[0] : "::1", 0);
		union io_address to = kind == IPV4 ? ipv4("127.0.0.2", 0) : ipv6(kind == IPV4_OF_DUAL ? mapped[1] : "::1", 0);
		from.ipv4.sin_port = port_of(client);
		send_whole(client, &asks);
		assert_int_equal(await(server), 1);
		assert_same_address(&got->peer, &from, true);
		assert_same_address(&got->local, &to, false);
		assert_int_equal(got->length, 100);
		assert_int_equal(got->segment, 100);
		/* the answer comes from the address that was asked */
		const struct io_datagrams answers = {
			.peer = got->peer, .local = got->local, .bytes = content, .length = 50, .segment = 50};
		send_whole(server, &answers);
		assert_int_equal(await(client), 1);
		assert_same_address(&got->peer, &address, true);
		close_both();
	}
}

static void marks_for_congestion_go_both_ways(void **state) {
	(void)state;
	close_both();
	for (enum kind kind = IPV4; kind < KINDS; kind++) {
		if (!open_both(kind)) continue;
		for (uint8_t ecn = 0; ecn < 4; ecn++) {
			struct io_datagrams d = to_server(2000, 1000);
			d.ecn = ecn;
			send_whole(client, &d);
			int n = await(server);
			for (int i = 0; i < n; i++) assert_int_equal(got[i].ecn, ecn);
			d.peer = got->peer;
			d.ecn = 3 - ecn;
			send_whole(server, &d);
			n = await(client);
			for (int i = 0; i < n; i++) assert_int_equal(got[i].ecn, 3 - ecn);
		}
		close_both();
	}
}

/* Sends 1 to 64 datagrams at once; the last one is shorter. */
static void send_some_at_once(int calls_for_each) {
	static const size_t lasts[] = {1, 999, 1000};
	for (size_t i = 0; i < COUNT(lasts); i++) {
		for (size_t datagrams = 1; datagrams <= IO_DATAGRAM_SEGMENTS; datagrams++) {
			const struct io_datagrams d = to_server((datagrams - 1) * 1000 + lasts[i], 1000);
			system_calls.sent = 0;
			send_whole(client, &d);
			assert_int_equal(system_calls.sent, calls_for_each ? datagrams * (size_t)calls_for_each : 1);
			const int structures = assert_receives(server, &d);
			if (!calls_for_each) assert_int_equal(structures, 1);
		}
	}
}

static void datagrams_that_are_sent_at_once_arrive_at_once(void **state) {
	(void)state;
	close_both();
	for (enum kind kind = IPV4; kind < KINDS; kind++) {
		if (!open_both(kind)) continue;
		send_some_at_once(0);
		close_both();
	}
}

static void where_there_are_no_segments_each_datagram_is_a_call(void **state) {
	(void)state;
	system_calls.unknown = true;
	send_some_at_once(1);
	assert_int_equal(system_calls.segmented, 0);
}

static void a_system_that_refuses_segments_is_asked_once(void **state) {
	(void)state;
	system_calls.segments_error = EINVAL;
	const struct io_datagrams d = to_server(5000, 1000);
	send_whole(client, &d);
	(void)assert_receives(server, &d);
	assert_int_equal(system_calls.segmented, 1);
	send_some_at_once(1);
	assert_int_equal(system_calls.segmented, 1);
}

static void a_route_that_refuses_segments_does_not_take_them_from_others(void **state) {
	(void)state;
	const struct io_datagrams d = to_server(5000, 1000);
	system_calls.segments_error = EIO;
	send_whole(client, &d);
	(void)assert_receives(server, &d);
	system_calls.segments_error = 0;
	send_some_at_once(0);
}

static void neither_does_an_address_that_is_not_local_any_more(void **state) {
	(void)state;
	struct io_datagrams d = to_server(5000, 1000);
	d.local = ipv4("192.0.2.1", 0);
	assert_int_equal(io_send(loop, client, &d), -1);
	system_calls.error = EINVAL; /* so most kernels say it */
	assert_int_equal(io_send(loop, client, &d), -1);
	assert_int_equal(errno, EINVAL);
	system_calls.error = 0;
	send_some_at_once(0);
}

static void more_than_a_call_may_send_is_sent_in_part(void **state) {
	(void)state;
	struct io_datagrams d = to_server((size_t)2 * IO_DATAGRAM_SEGMENTS * 100, 100);
	assert_int_equal(io_send(loop, client, &d), IO_DATAGRAM_SEGMENTS * 100);
	d.length = (size_t)IO_DATAGRAM_SEGMENTS * 100;
	(void)assert_receives(server, &d);
	d = to_server(100000, 1400);
	assert_int_equal(io_send(loop, client, &d), IO_DATAGRAM_BYTES / 1400 * 1400);
	d.length = IO_DATAGRAM_BYTES / 1400 * 1400;
	(void)assert_receives(server, &d);
	d = to_server(IO_DATAGRAM_BYTES, IO_DATAGRAM_BYTES);
	send_whole(client, &d);
	(void)assert_receives(server, &d);
}

static void a_datagram_is_not_fragmented(void **state) {
	(void)state;
	close_both();
	if (!open_both(IPV6)) skip();
	const struct io_datagrams d =
		to_server(IO_DATAGRAM_BYTES, IO_DATAGRAM_BYTES); /* lo takes packets of 65,536 bytes */
	assert_int_equal(io_send(loop, client, &d), -1);
	assert_int_equal(errno, EMSGSIZE);
	say(1200);
	assert_int_equal(await(server), 1);
}

static void a_socket_that_was_read_until_it_was_empty_comes_up_with_the_next_datagram(void **state) {
	(void)state;
	assert_silent(server);
	say(10);
	assert_int_equal(await(server), 1);
	assert_silent(server);
	/* one came between the report and the call */
	say(11);
	assert_true(comes_up(loop, io_canread, server, LONG_MS));
	say(12);
	assert_int_equal(receive(server), 2);
	assert_int_equal(got[1].length, 12);
	say(13);
	assert_int_equal(await(server), 1);
	assert_int_equal(got->length, 13);
}

static void few_datagrams_prove_the_socket_empty(void **state) {
	(void)state;
	assert_silent(server);
	say(10);
	assert_int_equal(await(server), 1);
	assert_false(comes_up(loop, io_canread, server, SHORT_MS));
}

static void more_datagrams_than_a_batch_are_left_for_the_next_call(void **state) {
	(void)state;
	enum { DATAGRAMS = 2 * IO_DATAGRAM_BATCH + 5 };
	for (size_t i = 0; i < DATAGRAMS; i++) say(100 + i);
	for (size_t seen = 0, n; seen < DATAGRAMS; seen += n) {
		n = (size_t)await(server);
		assert_int_equal(n, DATAGRAMS - seen < IO_DATAGRAM_BATCH ? DATAGRAMS - seen : IO_DATAGRAM_BATCH);
		for (size_t i = 0; i < n; i++) assert_int_equal(got[i].length, 100 + seen + i);
	}
	assert_silent(server);
}

static void what_does_not_fit_and_what_is_empty_is_left_out(void **state) {
	(void)state;
	const int stranger = socket(AF_INET, SOCK_DGRAM, 0);
	assert_silent(server);
	assert_int_equal(sendto(stranger, content, 100, 0, &address.any, io_address_length(&address)), 100);
	close(stranger);
	for (size_t i = 1; i < 6; i++) {
		if (i % 3 != 2) say(100 + i);
		else assert_int_equal(sendto(client, NULL, 0, 0, &address.any, io_address_length(&address)), 0);
	}
	system_calls.truncated = 1;
	assert_true(comes_up(loop, io_canread, server, LONG_MS));
	assert_int_equal(receive(server), 3);
	assert_int_equal(got[0].length, 101);
	assert_int_equal(got[1].length, 103);
	assert_int_equal(got[2].length, 104);
	for (int i = 0; i < 3; i++) assert_int_equal(got[i].peer.ipv4.sin_port, port_of(client));
	assert_memory_equal(got[2].bytes, content, 104);
	/* if nothing else came */
	say(100);
	assert_true(comes_up(loop, io_canread, server, LONG_MS));
	system_calls.truncated = 1;
	assert_int_equal(receive(server), 0);
	say(7);
	assert_int_equal(await(server), 1);
	assert_int_equal(got->length, 7);
}

static void errors_of_earlier_datagrams_are_skipped_and_told(void **state) {
	(void)state;
	assert_int_equal(connect(client, &address.any, io_address_length(&address)), 0);
	io_close(loop, server);
	for (int round = 0; round < 3; round++) {
		say(10); /* nobody hears it, and the client hears of that */
		(void)comes_up(loop, io_canread, client, LONG_MS);
		if (round < 2) continue;
		assert_int_equal(receive(client), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(io_skipped_error(received), ECONNREFUSED);
	}
	assert_int_equal(receive(client), -1);
	assert_int_equal(io_skipped_error(received), 0);
}

static void errors_of_the_socket_are_returned(void **state) {
	(void)state;
	assert_int_equal(dup2(STDIN_FILENO, server), server);
	assert_int_equal(receive(server), -1);
	assert_int_equal(errno, ENOTSOCK);
}

static void a_full_socket_is_not_ready_until_it_has_room(void **state) {
	(void)state;
	const struct io_datagrams d = to_server(5000, 1000);
	system_calls.error = EAGAIN;
	assert_int_equal(io_send(loop, client, &d), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(system_calls.sent, 1);
	assert_int_equal(io_wantwrite(loop, client), 0);
	assert_int_equal(io_canwrite(loop), -1);
	system_calls.error = 0;
	assert_true(comes_up(loop, io_canwrite, client, LONG_MS)); /* it never was full */
	send_whole(client, &d);
	(void)assert_receives(server, &d);
}

static void a_socket_that_has_become_full_takes_whole_datagrams(void **state) {
	(void)state;
	system_calls.unknown = true;
	system_calls.error = EAGAIN;
	system_calls.after = 3;
	struct io_datagrams d = to_server(5000, 1000);
	assert_int_equal(io_wantwrite(loop, client), 0);
	assert_int_equal(io_send(loop, client, &d), 3000);
	d.length = 3000;
	(void)assert_receives(server, &d);
	system_calls.error = 0;
	assert_true(comes_up(loop, io_canwrite, client, LONG_MS));
}

static void a_loss_in_this_machine_leaves_the_socket_ready(void **state) {
	(void)state;
	const struct io_datagrams d = to_server(5000, 1000);
	system_calls.error = ENOBUFS;
	assert_int_equal(io_wantwrite(loop, client), 0);
	assert_int_equal(io_send(loop, client, &d), -1);
	assert_int_equal(errno, ENOBUFS);
	assert_int_equal(io_wait(loop, 0), 0);
	assert_int_equal(io_canwrite(loop), client);
}

static int64_t clock_ms(void) { return io_read_clock() / 1000000; }

/* Its descriptor may have gone to another process, which then has the socket open. */
static void a_socket_that_is_closed_is_not_heard_of_though_others_have_it(void **state) {
	(void)state;
	if (strcmp(io_mechanism(), "kqueue") == 0) skip(); /* tests/kqueue is made of epoll(7) */
	enum { DATAGRAMS = 10 };
	const int other = dup(server);
	int early = 0;
	assert_silent(server);
	assert_silent(client);
	io_close(loop, server);
	for (int i = 0; i < DATAGRAMS; i++) {
		say(10);
		const int64_t begun_ms = clock_ms();
		assert_int_equal(io_wait(loop, SHORT_MS), 0);
		early += clock_ms() - begun_ms < SHORT_MS / 2;
		assert_int_equal(io_canread(loop), -1);
	}
	assert_true(early < DATAGRAMS / 2); /* a mechanism may still get an event of the forgotten socket */
	close(other);
}

#define IN_LOOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		IN_LOOP(datagrams_carry_the_addresses_of_both_ends),
		IN_LOOP(marks_for_congestion_go_both_ways),
		IN_LOOP(datagrams_that_are_sent_at_once_arrive_at_once),
		IN_LOOP(where_there_are_no_segments_each_datagram_is_a_call),
		IN_LOOP(a_system_that_refuses_segments_is_asked_once),
		IN_LOOP(a_route_that_refuses_segments_does_not_take_them_from_others),
		IN_LOOP(neither_does_an_address_that_is_not_local_any_more),
		IN_LOOP(more_than_a_call_may_send_is_sent_in_part),
		IN_LOOP(a_datagram_is_not_fragmented),
		IN_LOOP(a_socket_that_was_read_until_it_was_empty_comes_up_with_the_next_datagram),
		IN_LOOP(few_datagrams_prove_the_socket_empty),
		IN_LOOP(more_datagrams_than_a_batch_are_left_for_the_next_call),
		IN_LOOP(what_does_not_fit_and_what_is_empty_is_left_out),
		IN_LOOP(errors_of_earlier_datagrams_are_skipped_and_told),
		IN_LOOP(errors_of_the_socket_are_returned),
		IN_LOOP(a_full_socket_is_not_ready_until_it_has_room),
		IN_LOOP(a_socket_that_has_become_full_takes_whole_datagrams),
		IN_LOOP(a_loss_in_this_machine_leaves_the_socket_ready),
		IN_LOOP(a_socket_that_is_closed_is_not_heard_of_though_others_have_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
