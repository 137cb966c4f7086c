/* test_quic_admit.c - who may begin a connection, and when: time passes while the server works. */
#include "gatling/status/counters.h"
#include "tests/quic/fixture.h"

/* The server works for so long on a datagram that it takes, and when a connection sends; and on a handshake. */
enum { WORK_NS = 500000, HANDSHAKE_MS = 8 };
enum { BURST = 32, CROWD_MS = 3000, FIRST_MS = 1000, PATIENCE_MS = 200, CROWD = PATIENCE_MS + 1 };

static struct client_stream *stream;
static struct client *crowd[CROWD];

/* --- the work --- */

static bool nobody_waits(const struct conn_context *w, const struct peer *peer) {
	(void)w, (void)peer;
	return false;
}

static int64_t no_turn(const struct conn_context *w) {
	(void)w;
	return 0;
}

static int64_t work(const struct conn_context *w) {
	(void)w;
	network_set_now(network_now_ns() + WORK_NS);
	return 0;
}

static const struct conn_turns turns = {.waits = nobody_waits, .turn_ns = no_turn, .begun = work};

static int set_up_work(void **state) {
	(void)set_up(state);
	pass(6 * NETWORK_DELAY_MS);
	server_quic()->context->turns = &turns;
	return client->open ? 0 : -1;
}

static unsigned refused(void) { return (unsigned)counters_value(counters, COUNT_REFUSED_OVERLOAD); }

/* --- tests --- */

static void begin_burst(void) {
	for (unsigned i = 0; i < BURST; i++) crowd[i] = client_new(i + 1);
}

static void end_burst(void) {
	for (unsigned i = 0; i < BURST; i++) client_free(crowd[i]);
}

static bool is_answered(void) { return client_has_got(stream, server_content, SERVER_SMALL_LENGTH); }

static void who_has_a_connection_does_not_wait_for_those_who_begin_one(void **state) {
	(void)state;
	begin_burst();
	stream = client_get(client, SERVER_SMALL);
	assert_true(pass_until(is_answered, 3 * NETWORK_DELAY_MS));
	end_burst();
}

static bool all_are_open(void) {
	for (unsigned i = 0; i < BURST; i++)
		if (!crowd[i]->open) return false;
	return true;
}

static void all_of_a_burst_are_served(void **state) {
	(void)state;
	const unsigned before = refused();
	begin_burst();
	assert_true(pass_until(all_are_open, BURST * HANDSHAKE_MS));
	assert_int_equal(refused(), before);
	end_burst();
}

static bool some_wait(void) { return server_quic()->beginning.first; }

static void those_who_wait_are_served_by_the_next_process(void **state) {
	(void)state;
	begin_burst();
	assert_true(pass_until(some_wait, 2 * NETWORK_DELAY_MS));
	server_succeed(1);
	assert_true(pass_until(all_are_open, BURST * HANDSHAKE_MS));
	end_burst();
}

/* A client comes each millisecond, and gives up after PATIENCE_MS. Returns how many a second were served, not counting
 * those of the first second, in which overload begins. */
static unsigned serve_crowd(void) {
	unsigned served = 0;
	const int64_t begun_ns = network_now_ns();
	for (unsigned n = 0; n < CROWD_MS; n++) {
		const int64_t due_ns = begun_ns + n * INT64_C(1000000);
		struct client **c = &crowd[n % CROWD];
		if (n >= CROWD) {
			served += (*c)->open && n > FIRST_MS;
			if ((*c)->open) client_close(*c, HTTP3_NO_ERROR);
			client_free(*c);
		}
		*c = client_new(1 + n % CROWD);
		if (due_ns > network_now_ns()) (void)pass_until(NULL, (int)((due_ns - network_now_ns()) / 1000000));
	}
	for (unsigned i = 0; i < CROWD; i++) client_free(crowd[i]);
	return served * 1000 / (CROWD_MS - FIRST_MS);
}

static void when_more_come_than_can_be_served_those_are_who_have_hardly_waited(void **state) {
	(void)state;
	const unsigned before = refused();
	assert_true(serve_crowd() > 1000 / HANDSHAKE_MS / 2);
	assert_true(refused() > before);
}

#define TEST_WORK(name) cmocka_unit_test_setup_teardown(name, set_up_work, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST_WORK(who_has_a_connection_does_not_wait_for_those_who_begin_one),
		TEST_WORK(all_of_a_burst_are_served),
		TEST_WORK(those_who_wait_are_served_by_the_next_process),
		TEST_WORK(when_more_come_than_can_be_served_those_are_who_have_hardly_waited),
	};
	return RUN(tests);
}
