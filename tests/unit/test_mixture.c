/* test_mixture.c - whatever is done to descriptors in whatever order, at rest none is forgotten: what can be read comes
 * up, and so does what can be written to. Those that are closed are replaced at once by others with the same numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include "io/io.h"
#include "tests/unit/check.h"
#include "tests/unit/dice.h"

enum { PAIRS = 60, ROUNDS = 300, STEPS = 400, LIMIT_MS = 10000 };

enum kind { SOCKET, PIPE_IN, PIPE_OUT }; /* the last two are read from, or written to, alone */

static struct pair {
	enum kind kind;
	int mine, peer; /* peer -1: it has been closed */
	bool ended;     /* by the peer */
	size_t coming;  /* bytes that can be read */
} pair[PAIRS];

static io_loop *loop;
static int listening;
static struct sockaddr_in address;
static char buffer[1 << 18];

static size_t some_bytes(void) {
	const size_t most[] = {1, 100, 70000, sizeof buffer};
	return 1 + dice((uint32_t)most[dice(COUNT(most))]);
}

/* --- pairs --- */

static void make_pair(struct pair *l) {
	int end[2];
	*l = (struct pair){.kind = SOCKET};
	switch (dice(4)) {
	case 0:
		assert_int_equal(pipe2(end, O_NONBLOCK), 0);
		l->kind = dice(2) ? PIPE_IN : PIPE_OUT;
		break;
	case 1:
		end[1] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(end[1], (struct sockaddr *)&address, sizeof address), 0);
		end[0] = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
		assert_int_equal(fcntl(end[1], F_SETFL, O_NONBLOCK), 0);
		break;
	default: assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end), 0);
	}
	l->mine = end[l->kind == PIPE_OUT];
	l->peer = end[l->kind != PIPE_OUT];
	assert_int_equal(io_fd(loop, l->mine, l), 0);
}

static void close_peer(struct pair *l) {
	if (l->peer != -1) close(l->peer);
	l->peer = -1;
	l->ended = true;
}

static void replace(struct pair *l) {
	io_close(loop, l->mine);
	close_peer(l);
	make_pair(l);
}

/* Returns what the call did. */
static ssize_t receive(struct pair *l, size_t length) {
	ssize_t n = io_tryread(loop, l->mine, buffer, length);
	if (n > 0) l->coming -= (size_t)n;
	if (n == 0) assert_true(l->ended);
	if (n == -1) assert_true(errno == EAGAIN || errno == ECONNRESET);
	return n;
}

static ssize_t transmit(const struct pair *l, size_t length) {
	ssize_t n = io_trywrite(loop, l->mine, buffer, length);
	if (n == -1) assert_true(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
	return n;
}

static void swallow(const struct pair *l) {
	while (l->kind != PIPE_IN && l->peer != -1 && read(l->peer, buffer, sizeof buffer) > 0) {}
}

static void have_peer_act(struct pair *l) {
	const uint32_t what = dice(80);
	if (what < 40 && l->kind != PIPE_OUT && !l->ended) {
		ssize_t n = write(l->peer, buffer, some_bytes());
		if (n > 0) l->coming += (size_t)n;
	} else if (what < 78) {
		swallow(l);
	} else if (what == 78 && l->kind == SOCKET && l->peer != -1) {
		(void)shutdown(l->peer, SHUT_WR);
		l->ended = true;
	} else {
		close_peer(l);
	}
}

/* --- the mixture --- */

static struct pair *pair_of(int fd) {
	struct pair *l = io_cookie(loop, fd);
	assert_true(l && l->mine == fd);
	return l;
}

static void use_reader(int fd) {
	struct pair *l = pair_of(fd);
	assert_true(l->kind != PIPE_OUT);
	switch (dice(10)) {
	case 0: replace(l); break;
	case 1: replace(&pair[dice(PAIRS)]); break;
	case 2: (void)io_postpone_read(loop, fd); break;
	case 3: break;
	case 4: have_peer_act(l); /* fall through */
	default: (void)receive(l, some_bytes());
	}
}

static void use_writer(int fd) {
	struct pair *l = pair_of(fd);
	assert_true(l->kind != PIPE_IN);
	switch (dice(10)) {
	case 0: replace(l); break;
	case 1: replace(&pair[dice(PAIRS)]); break;
	case 2: (void)io_postpone_write(loop, fd); break;
	case 3: have_peer_act(l); /* fall through */
	default: (void)transmit(l, some_bytes());
	}
}

/* A turn, which may end early. */
static void turn(void) {
	assert_int_equal(io_wait(loop, 0), 0);
	for (int fd; dice(20) && (fd = io_canread(loop)) != -1;) use_reader(fd);
	for (int fd; dice(3) && (fd = io_postponed_read(loop)) != -1;) use_reader(fd);
	for (int fd; dice(20) && (fd = io_canwrite(loop)) != -1;) use_writer(fd);
	for (int fd; dice(3) && (fd = io_postponed_write(loop)) != -1;) use_writer(fd);
	for (int fd; (fd = io_timedout(loop)) != -1;) replace(pair_of(fd));
}

static void step(void) {
	struct pair *l = &pair[dice(PAIRS)];
	switch (dice(12)) {
	case 0:
		if (l->kind != PIPE_OUT) assert_int_equal(io_wantread(loop, l->mine), 0);
		break;
	case 1:
		if (l->kind != PIPE_IN) assert_int_equal(io_wantwrite(loop, l->mine), 0);
		break;
	case 2: io_dontwantread(loop, l->mine); break;
	case 3: io_dontwantwrite(loop, l->mine); break;
	case 4:
		if (dice(6) == 0) replace(l);
		break;
	case 5:
		if (l->kind != PIPE_OUT) (void)receive(l, some_bytes());
		break;
	case 6:
		if (l->kind != PIPE_IN) (void)transmit(l, some_bytes());
		break;
	case 7: io_timeout(loop, l->mine, dice(2) ? io_now(loop) + dice(300) : 0); break;
	case 8:
	case 9: have_peer_act(l); break;
	default: turn();
	}
}

/* --- at rest --- */

/* Reads all. Returns whether nothing more is to come. */
static bool exhaust(struct pair *l) {
	ssize_t n;
	while ((n = receive(l, sizeof buffer)) > 0) {}
	if (n == -1 && errno == EAGAIN) return !l->coming && !l->ended;
	io_dontwantread(loop, l->mine);
	return true;
}

/* Returns whether something was sent, or cannot be any more. */
static bool send_one(struct pair *l) {
	bool done = transmit(l, 1) == 1 || errno != EAGAIN;
	if (done) io_dontwantwrite(loop, l->mine);
	swallow(l);
	return done;
}

static void assert_none_is_forgotten(void) {
	bool read[PAIRS], written[PAIRS];
	unsigned left = 0;
	for (int i = 0; i < PAIRS; i++) {
		struct pair *l = &pair[i];
		read[i] = l->kind == PIPE_OUT || (!l->coming && !l->ended);
		written[i] = l->kind == PIPE_IN;
		if (l->kind != PIPE_OUT) assert_int_equal(io_wantread(loop, l->mine), 0);
		if (l->kind != PIPE_IN) assert_int_equal(io_wantwrite(loop, l->mine), 0);
		swallow(l);
		left += !read[i] + !written[i];
	}
	for (int64_t until_ms = io_read_clock() / 1000000 + LIMIT_MS; left;) {
		assert_int_equal(io_wait(loop, LIMIT_MS), 0);
		for (int fd; (fd = io_canread(loop)) != -1 || (fd = io_postponed_read(loop)) != -1;) {
			struct pair *l = pair_of(fd);
			if (!exhaust(l) || read[l - pair]) continue;
			read[l - pair] = true;
			left--;
		}
		for (int fd; (fd = io_canwrite(loop)) != -1 || (fd = io_postponed_write(loop)) != -1;) {
			struct pair *l = pair_of(fd);
			if (!send_one(l) || written[l - pair]) continue;
			written[l - pair] = true;
			left--;
		}
		assert_true(io_now(loop) < until_ms);
	}
}

static void no_descriptor_is_forgotten_whatever_is_done_to_them(void **state) {
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t steps = dice(STEPS); steps; steps--) step();
		assert_none_is_forgotten();
	}
}

static int set_up(void **state) {
	socklen_t length = sizeof address;
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	loop = io_loop_new();
	listening = socket(AF_INET, SOCK_STREAM, 0);
	address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (!loop || bind(listening, (struct sockaddr *)&address, length) == -1 || listen(listening, PAIRS) == -1 ||
		getsockname(listening, (struct sockaddr *)&address, &length) == -1)
		return -1;
	for (int i = 0; i < PAIRS; i++) make_pair(&pair[i]);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	for (int i = 0; i < PAIRS; i++) {
		io_close(loop, pair[i].mine);
		close_peer(&pair[i]);
	}
	close(listening);
	io_loop_free(loop);
	return 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_descriptor_is_forgotten_whatever_is_done_to_them)};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
