/* test_kernel_memory.c - who goes when the kernel's memory for TCP is taken. */
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "gatling/base/platform.h"
#include "gatling/load/kernel_memory.h"
#include "gatling/load/walk.h"

enum { CONNECTIONS = 100, HELD = 1000 };

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
static uint64_t in_kernel(const void *c) { return ((const struct connection *)c)->held; }

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
	int left;
	w->sent++;
	while ((left = kernel_memory_due(w, io_now(w->loop))) > 0) (void)io_wait(w->loop, left);
	assert_int_equal(left, 0);
	kernel_memory_enforce(w);
}

static unsigned closed(unsigned from, unsigned to) {
	unsigned n = 0;
	for (unsigned i = from; i < to; i++) n += connection[i].closed;
	return n;
}

/* The first thirty take nothing, the next thirty all that is held in twenty seconds, the others all of it in one. */
static void the_slowest_go_until_there_is_room(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = 80 * HELD;
	walk(w);
	assert_int_equal(closed(0, CONNECTIONS), 0); /* it is not known yet who is slow */
	for (int i = 30; i < CONNECTIONS; i++) connection[i].carried = i < 60 ? HELD / 20 : HELD;
	walk(w);
	assert_int_equal(closed(0, CONNECTIONS), 30);
	assert_int_equal(closed(0, 30), 30);
	walk(w);
	assert_int_equal(closed(0, CONNECTIONS), 30); /* there is room */
	w->kernel.most = 20 * HELD;
	for (int i = 30; i < CONNECTIONS; i++) connection[i].carried += i < 60 ? HELD / 20 : HELD;
	walk(w);
	assert_int_equal(closed(30, 60), 30);
	assert_int_equal(closed(60, CONNECTIONS), 0); /* nobody goes who is not slow */
}

static void nothing_is_measured_without_need(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = 2 * CONNECTIONS * HELD;
	assert_int_equal(kernel_memory_due(w, io_now(w->loop)), -1); /* nothing was sent */
	walk(w);
	assert_null(w->kernel.window);
	assert_int_equal(kernel_memory_due(w, io_now(w->loop) + KERNEL_MEMORY_WALK_MS), -1);
	w->sent++;
	w->connections = KERNEL_MEMORY_LEAST - 1;
	assert_int_equal(kernel_memory_due(w, io_now(w->loop) + KERNEL_MEMORY_WALK_MS), -1);
	w->connections = CONNECTIONS;
	w->kernel.most = 0; /* a system that does not tell */
	assert_int_equal(kernel_memory_due(w, io_now(w->loop) + KERNEL_MEMORY_WALK_MS), -1);
}

static void a_new_connection_is_not_taken_for_the_old_one_of_its_number(void **state) {
	struct conn_context *w = *state;
	w->kernel.most = CONNECTIONS * HELD - 1;
	walk(w);
	kernel_windows_forget(&w->kernel, 0);
	for (int i = 1; i < CONNECTIONS; i++) connection[i].carried = HELD;
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
	assert_in_range(platform_socket_memory(server), 0, SENT / 4);
	assert_int_equal(send(server, data, SENT, 0), SENT);
#ifdef __linux__
	assert_in_range(platform_socket_memory(server), SENT * 3 / 4, SENT * 20);
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
		WITH_CONNECTIONS(a_new_connection_is_not_taken_for_the_old_one_of_its_number),
		cmocka_unit_test(the_kernel_tells_what_a_connection_takes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
