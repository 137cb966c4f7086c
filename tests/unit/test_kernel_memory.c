/* test_kernel_memory.c - who goes when the kernel's memory for TCP is taken. */
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/platform.h"
#include "gatling/load/kernel_memory.h"
#include "gatling/load/walk.h"

enum { CONNECTIONS = 200, HELD = 1000 };

static int64_t passed_ms; /* on the clock of this program, besides the time that it takes */

int clock_gettime(clockid_t clock, struct timespec *now) {
	const int result = (int)syscall(SYS_clock_gettime, clock, now);
	now->tv_sec += passed_ms / 1000;
	now->tv_nsec += passed_ms % 1000 * 1000000;
	if (now->tv_nsec >= 1000000000) {
		now->tv_sec++;
		now->tv_nsec -= 1000000000;
	}
	return result;
}

static struct connection {
	uint64_t held;
	int64_t carried;
	bool closed;
} connection[CONNECTIONS];

static int bound(const struct conn_context *w) {
	(void)w;
	return CONNECTIONS;
}

static void *at(const struct conn_context *w, int number) {
	(void)w;
	return connection[number].closed ? NULL : &connection[number];
}

static int64_t carried(const void *c) { return ((const struct connection *)c)->carried; }

static uint64_t in_kernel(const void *c, uint64_t *unsent) { return *unsent = ((const struct connection *)c)->held; }

static bool close_for(struct conn_context *w, void *c, enum conn_closing why) {
	assert_int_equal(why, CONN_CLOSE_SLOW);
	((struct connection *)c)->closed = true;
	w->connections--;
	return true;
}

static const struct conn_kind kind = {
	.bound = bound, .at = at, .carried = carried, .in_kernel = in_kernel, .close = close_for};

static int set_up(void **state) {
	struct conn_context *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->loop = io_loop_new();
	w->kinds[CONN_TCP] = &kind;
	w->connections = CONNECTIONS;
	for (int i = 0; i < CONNECTIONS; i++) connection[i] = (struct connection){.held = HELD};
	*state = w;
	return 0;
}

static int tear_down(void **state) {
	struct conn_context *w = *state;
	free(w->kernel.window);
	io_loop_free(w->loop);
	free(w);
	return 0;
}

/* Lets time pass until the next walk is due, and makes it. */
static void walk(struct conn_context *w) {
	w->sent++;
	const int left = kernel_memory_due(w, io_now(w->loop));
	assert_in_range(left, 0, KERNEL_MEMORY_REST_MS);
	passed_ms += left;
	(void)io_wait(w->loop, 0);
	assert_int_equal(kernel_memory_due(w, io_now(w->loop)), 0);
	kernel_memory_enforce(w);
}

/* Lets clients take so much in each second, for as long as it takes to know their pace. */
static void take(struct conn_context *w, unsigned from, unsigned to, int64_t bytes, unsigned from_2, unsigned to_2,
				 int64_t bytes_2) {
	for (int ms = 0; ms < KERNEL_MEMORY_KNOWN_MS; ms += KERNEL_MEMORY_WALK_MS) {
		for (unsigned i = from; i < to; i++) connection[i].carried += bytes;
		for (unsigned i = from_2; i < to_2; i++) connection[i].carried += bytes_2;
		walk(w);
	}
}

static unsigned closed(unsigned from, unsigned to) {
	unsigned n = 0;
	for (unsigned i = from; i < to; i++) n += connection[i].closed;
	return n;
}

/* The first thirty take nothing, the next thirty all that is held in twenty seconds, the others all of it in one. */
static void the_slowest_go_until_there_is_room(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = 195 * HELD - HELD / 8; /* an eighth of it is to be free: 170 fit */
	walk(w);
	assert_int_equal(closed(0, CONNECTIONS), 0); /* it is not known yet who is slow */
	take(w, 30, 60, HELD / 20, 60, CONNECTIONS, HELD);
	assert_int_equal(closed(0, CONNECTIONS), 30);
	assert_int_equal(closed(0, 30), 30);
	walk(w);
	assert_int_equal(closed(0, CONNECTIONS), 30); /* there is room */
	w->kernel.most = 20 * HELD;
	take(w, 30, 60, HELD / 20, 60, CONNECTIONS, HELD);
	assert_int_equal(closed(30, 60), 30);
	assert_int_equal(closed(60, CONNECTIONS), 0); /* nobody goes who is not slow */
}

static void nothing_is_measured_without_need(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = 2 * CONNECTIONS * HELD;
	assert_int_equal(kernel_memory_due(w, io_now(w->loop)), -1); /* nothing was sent */
	walk(w);
	assert_null(w->kernel.window);
	assert_int_equal(kernel_memory_due(w, io_now(w->loop) + KERNEL_MEMORY_REST_MS), -1);
	w->sent++;
	w->connections = KERNEL_MEMORY_LEAST - 1;
	assert_int_equal(kernel_memory_due(w, io_now(w->loop) + KERNEL_MEMORY_REST_MS), -1);
	w->connections = CONNECTIONS;
	w->kernel.most = 0; /* a system that does not tell */
	assert_int_equal(kernel_memory_due(w, io_now(w->loop) + KERNEL_MEMORY_REST_MS), -1);
}

static void a_new_connection_is_not_taken_for_the_old_one_of_its_number(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = CONNECTIONS * HELD - 1;
	take(w, 1, CONNECTIONS, HELD, 0, 0, 0);
	kernel_windows_forget(&w->kernel, 0);
	take(w, 1, CONNECTIONS, HELD, 0, 0, 0);
	assert_int_equal(closed(0, CONNECTIONS), 0);
	walk(w);
	assert_int_equal(closed(0, 1), 1);
}

static void who_has_nothing_to_take_is_not_slow(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = CONNECTIONS * HELD / 2;
	connection[0].held = 0; /* a connection that is kept open */
	take(w, 1, CONNECTIONS, HELD, 0, 0, 0);
	connection[0].held = 10 * HELD; /* an answer that has just been sent */
	walk(w);
	walk(w);
	assert_int_equal(closed(0, CONNECTIONS), 0);
}

static void what_was_before_a_pause_is_not_known(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = CONNECTIONS * HELD / 2;
	walk(w);
	passed_ms += 2 * KERNEL_MEMORY_KNOWN_MS;
	walk(w);
	assert_int_equal(closed(0, CONNECTIONS), 0);
}

static void the_kernel_tells_what_a_connection_takes(void **state) {
	(void)state;
	enum { SENT = 50000 };
	static const char data[SENT];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	const int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), small = 2000;
	setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
	const int server = accept(listener, NULL, NULL);
	uint64_t unsent;
	assert_in_range(platform_socket_memory(server, &unsent), 0, SENT / 4);
	assert_int_equal(unsent, 0);
	assert_int_equal(send(server, data, SENT, 0), SENT);
#ifdef __linux__
	assert_in_range(platform_socket_memory(server, &unsent), SENT * 3 / 4, SENT * 20);
	assert_in_range(unsent, SENT * 3 / 4, SENT * 20);
#endif
	close(server);
	close(client);
	close(listener);
}

#define WITH_CONNECTIONS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_CONNECTIONS(the_slowest_go_until_there_is_room),
		WITH_CONNECTIONS(nothing_is_measured_without_need),
		WITH_CONNECTIONS(who_has_nothing_to_take_is_not_slow),
		WITH_CONNECTIONS(what_was_before_a_pause_is_not_known),
		WITH_CONNECTIONS(a_new_connection_is_not_taken_for_the_old_one_of_its_number),
		cmocka_unit_test(the_kernel_tells_what_a_connection_takes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
