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

enum { HEAVY = 32, HEAVY_FIRST = 100, SOON = 4 };

static bool is_heavy(const struct conn_context *w, const struct peer *peer) {
	(void)w;
	return peer->address.s6_addr[15] > HEAVY_FIRST; /* as in network_client() */
}

static int64_t long_turn(const struct conn_context *w) {
	(void)w;
	return QUIC_BEGIN_NS;
}

static void those_of_a_heavy_address_begin_after_others(void **state) {
	(void)state;
	static const struct conn_turns two = {.waits = is_heavy, .turn_ns = long_turn, .begun = work};
	struct client *heavy[HEAVY];
	unsigned open = 0;
	server_quic()->context->turns = &two;
	for (unsigned i = 0; i < HEAVY; i++) heavy[i] = client_new(HEAVY_FIRST + i);
	pass(1);
	begin_burst();
	assert_true(pass_until(all_are_open, BURST * HANDSHAKE_MS));
	for (unsigned i = 0; i < HEAVY; i++) open += heavy[i]->open;
	assert_true(open <= SOON);
	end_burst();
	for (unsigned i = 0; i < HEAVY; i++) client_free(heavy[i]);
}

/* --- what is refused --- */

static void what_begins_no_connection_does_not_wait_for_one(void **state) {
	(void)state;
	const union io_address stranger = network_client(2);
	const uint8_t initial[QUIC_INITIAL_MIN - 1] = {0xc0, 0, 0, 0, 1, 8};
	const unsigned before = refused();
	for (unsigned i = 0; i < QUIC_QUEUE / 200; i++) network_send(&stranger, initial, 30, 0);
	network_send(&stranger, initial, sizeof initial, 0);
	pass(2 * NETWORK_DELAY_MS);
	assert_int_equal(refused(), before);
	assert_false(quic_is_overloaded(server_quic()));
}

static void under_overload_clients_are_asked_for_a_token(void **state) {
	(void)state;
	struct client *other = client_new(1);
	server_quic()->overload_until_ms = network_now_ns() / 1000000 + QUIC_OVERLOAD_MS;
	stream = client_get(other, SERVER_SMALL);
	assert_true(pass_until(is_answered, 10 * NETWORK_DELAY_MS));
	assert_true(other->was_retried);
	client_free(other);
}

static int refuse_all(struct conn_context *w, const struct peer *peer) {
	(void)w, (void)peer;
	return 429;
}

static bool is_over(void) { return client->ended; }

/* They could be forged otherwise, and a handshake would be work for nothing. */
static void who_is_refused_is_told_after_a_token_and_before_a_handshake(void **state) {
	(void)state;
	struct conn_context *w = server_quic()->context;
	int (*const refusal)(struct conn_context *, const struct peer *) = w->refusal;
	client_free(client);
	client = client_new(1);
	w->refusal = refuse_all;
	const bool ended = pass_until(is_over, 10 * NETWORK_DELAY_MS);
	w->refusal = refusal;
	assert_true(ended && client->was_retried && !client->open);
	assert_int_equal(client->error, NGTCP2_CONNECTION_REFUSED);
	assert_int_equal(server_quic()->half_open, 0);
}

#define TEST_WORK(name) cmocka_unit_test_setup_teardown(name, set_up_work, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST_WORK(who_has_a_connection_does_not_wait_for_those_who_begin_one),
		TEST_WORK(all_of_a_burst_are_served),
		TEST_WORK(those_who_wait_are_served_by_the_next_process),
		TEST_WORK(those_of_a_heavy_address_begin_after_others),
		TEST_WORK(what_begins_no_connection_does_not_wait_for_one),
		TEST_WORK(under_overload_clients_are_asked_for_a_token),
		TEST_WORK(who_is_refused_is_told_after_a_token_and_before_a_handshake),
		TEST_WORK(when_more_come_than_can_be_served_those_are_who_have_hardly_waited),
	};
	return RUN(tests);
}
