/* test_quic_connection.c - how connections of QUIC begin and end, and what an address gets that has not shown that it
 * receives. */
#include "tests/quic/fixture.h"

enum { SHORT_MS = 10 * NETWORK_DELAY_MS, LONG_MS = 60000, AMPLIFICATION = 3, ANSWERS = 16 };

static struct client_stream *stream;

static bool is_open(void) { return client->open; }
static bool has_ended(void) { return client->ended; }
static bool has_got(void) { return client_has_got(stream, server_content, SERVER_SMALL_LENGTH); }
static bool is_accepted(void) { return server_quic()->connections; }
static bool nobody_is_left(void) { return !server_quic()->connections; }

/* Asks for a file. Returns whether it comes. */
static bool get(void) {
	stream = client_get(client, SERVER_SMALL);
	return pass_until(has_got, LONG_MS);
}

/* --- the beginning --- */

/* RFC 9000, section 8 */
static void an_address_that_does_not_answer_gets_three_times_what_it_sent(void **state) {
	(void)state;
	assert_true(pass_until(is_accepted, SHORT_MS));
	client->silent = true;
	assert_true(pass_until(nobody_is_left, LONG_MS));
	assert_true(network_sums.bytes[0] > network_sums.bytes[1]);
	if (network_sums.bytes[0] > AMPLIFICATION * network_sums.bytes[1])
		fail_msg("%zu bytes for %zu", network_sums.bytes[0], network_sums.bytes[1]);
}

static void is_given_up_after(int limit_s) {
	assert_true(pass_until(is_accepted, SHORT_MS));
	client->silent = true;
	pass(limit_s * 1000 - SHORT_MS);
	assert_int_equal(server_quic()->half_open, 1);
	pass(2 * SHORT_MS);
	assert_int_equal(server_quic()->half_open, 0);
	assert_true(nobody_is_left());
}

static void a_handshake_without_an_end_is_given_up(void **state) {
	(void)state;
	is_given_up_after(QUIC_HANDSHAKE_S);
}

static void a_handshake_has_no_more_time_than_heads_have(void **state) {
	(void)state;
	server_options()->head_timeout_s = 3;
	is_given_up_after(3);
}

/* Leaves as many handshakes without an end, so that the next address is validated. */
static void leave_half_open(void) {
	struct client *other[QUIC_HALF_OPEN];
	client->silent = true;
	for (unsigned i = 0; i < QUIC_HALF_OPEN; i++) other[i] = client_new(i + 1);
	pass(NETWORK_DELAY_MS);
	assert_int_equal(server_quic()->half_open, QUIC_HALF_OPEN);
	for (unsigned i = 0; i < QUIC_HALF_OPEN; i++) client_free(other[i]);
	client_free(client);
	client = client_new(0);
}

static void when_many_handshakes_are_under_way_an_address_is_validated(void **state) {
	(void)state;
	leave_half_open();
	assert_true(get());
	assert_true(client->was_retried);
	assert_int_equal(server_quic()->connections, QUIC_HALF_OPEN + 1);
}

static bool was_retried(void) { return client->was_retried; }

static struct fate lose_what_follows_a_retry(bool to_server, unsigned number) {
	(void)number;
	return (struct fate){.copies = !(to_server && client->was_retried), .delay_ms = NETWORK_DELAY_MS};
}

static void the_token_of_a_retry_is_of_one_address(void **state) {
	(void)state;
	leave_half_open();
	network_set_fate(lose_what_follows_a_retry);
	assert_true(pass_until(was_retried, SHORT_MS));
	pass(NETWORK_DELAY_MS);
	network_set_fate(NULL);
	client->address = network_client(CLIENTS); /* from where it sends the token again */
	pass(1000);
	assert_int_equal(server_quic()->connections, QUIC_HALF_OPEN);
	client->address = network_client(0);
	assert_true(get());
}

/* Has the client send its token again after that time, or soon after it. */
static void send_token_after(int ms) {
	server_quic()->half_open += QUIC_HALF_OPEN;
	network_set_fate(lose_what_follows_a_retry);
	assert_true(pass_until(was_retried, SHORT_MS));
	pass(ms);
	network_set_fate(NULL);
	pass(2 * ms);
	server_quic()->half_open -= QUIC_HALF_OPEN;
}

static void the_token_of_a_retry_is_valid_for_some_time(void **state) {
	(void)state;
	send_token_after(QUIC_RETRY_S / 2 * 1000);
	assert_true(client->open);
	(void)tear_down(state);
	(void)set_up(state);
	send_token_after((QUIC_RETRY_S + 1) * 1000);
	assert_true(client->ended); /* at once, as it would take no second Retry */
	assert_int_equal(client->error, NGTCP2_INVALID_TOKEN);
	assert_int_equal(server_quic()->connections, 0);
}

/* --- while it is open --- */

static void keys_are_updated(void **state) {
	(void)state;
	assert_true(get());
	for (int i = 0; i < 3; i++) {
		pass(1000);
		assert_int_equal(ngtcp2_conn_initiate_key_update(client->conn, (uint64_t)network_now_ns()), 0);
		assert_true(get());
	}
	assert_false(client->ended);
}

static struct client_stream *answers[ANSWERS];

static bool has_all(void) {
	for (unsigned i = 0; i < ANSWERS; i++)
		if (!client_has_got(answers[i], server_content, SERVER_SMALL_LENGTH)) return false;
	return true;
}

static void many_small_answers_fill_datagrams_that_are_sent_at_once(void **state) {
	size_t octets = 0;
	(void)state;
	assert_true(get());
	pass(LONG_MS / 10);
	const struct network_sums before = network_sums;
	for (unsigned i = 0; i < ANSWERS; i++) answers[i] = client_get(client, SERVER_SMALL);
	assert_true(pass_until(has_all, SHORT_MS));
	for (unsigned i = 0; i < ANSWERS; i++) octets += answers[i]->received;
	assert_int_equal(network_sums.calls - before.calls, 1);
	assert_true(network_sums.datagrams[0] - before.datagrams[0] > 2);
	assert_in_range(network_sums.bytes[0] - before.bytes[0], octets, octets + octets / 8);
}

static bool has_some(void) { return stream->received; }
static bool is_reset(void) { return stream->reset; }

/* Asks for a file of which only a part comes. */
static void get_part(void) {
	pass(2000); /* so that the server looks at the file again */
	stream = client_get(client, SERVER_LARGE);
	assert_true(pass_until(has_some, SHORT_MS));
	server_truncate(0);
}

static void a_response_that_cannot_be_completed_is_reset(void **state) {
	(void)state;
	get_part();
	const bool reset = pass_until(is_reset, SHORT_MS);
	server_truncate(SERVER_LARGE_LENGTH);
	assert_true(reset && get());
}

static void *allocate_nothing(void *block, size_t size, void *sum) {
	(void)block, (void)size, (void)sum;
	return NULL;
}

static void without_memory_for_that_the_connection_ends(void **state) {
	(void)state;
	get_part();
	server_quic()->place[0]->allocator.realloc = allocate_nothing;
	const bool ended = pass_until(has_ended, SHORT_MS);
	server_truncate(SERVER_LARGE_LENGTH);
	assert_true(ended && nobody_is_left());
	assert_int_equal(client->error, HTTP3_INTERNAL_ERROR);
}

/* --- the end --- */

static void an_idle_connection_ends_without_a_word(void **state) {
	(void)state;
	assert_true(get());
	pass(SHORT_MS);
	client->silent = true;
	pass(QUIC_IDLE_S * 1000 - 2 * SHORT_MS);
	const unsigned sent = network_sums.datagrams[0];
	assert_false(nobody_is_left());
	assert_true(pass_until(nobody_is_left, 3 * SHORT_MS));
	assert_int_equal(network_sums.datagrams[0], sent);
}

static void a_client_that_has_gone_is_forgotten(void **state) {
	(void)state;
	assert_true(get());
	client_close(client, HTTP3_NO_ERROR);
	assert_true(pass_until(nobody_is_left, 2 * NETWORK_DELAY_MS));
}

static void the_client_of_a_lost_connection_is_told(void **state) {
	(void)state;
	assert_true(get());
	quic_free_connection(server_quic()->place[0]); /* without a word */
	stream = client_get(client, SERVER_SMALL);
	assert_true(pass_until(has_ended, SHORT_MS));
	assert_true(client->was_reset);
}

static void the_end_of_the_server_is_said(void **state) {
	(void)state;
	assert_true(get());
	quic_drain(server_quic(), true);
	assert_true(pass_until(has_ended, QUIC_LAST_S * 1000 + QUIC_CHECK_MS + SHORT_MS));
	assert_int_equal(client->error, HTTP3_NO_ERROR);
	assert_true(nobody_is_left());
}

static void an_error_of_http3_is_said(void **state) {
	(void)state;
	assert_true(pass_until(is_open, SHORT_MS));
	client_send(client, true, SLICE("\1"), false); /* a push */
	assert_true(pass_until(has_ended, SHORT_MS));
	assert_int_equal(client->error, HTTP3_STREAM_CREATION_ERROR);
	assert_true(nobody_is_left());
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(an_address_that_does_not_answer_gets_three_times_what_it_sent),
		TEST(a_handshake_without_an_end_is_given_up),
		TEST(a_handshake_has_no_more_time_than_heads_have),
		TEST(when_many_handshakes_are_under_way_an_address_is_validated),
		TEST(the_token_of_a_retry_is_of_one_address),
		TEST(the_token_of_a_retry_is_valid_for_some_time),
		TEST(keys_are_updated),
		TEST(many_small_answers_fill_datagrams_that_are_sent_at_once),
		TEST(a_response_that_cannot_be_completed_is_reset),
		TEST(without_memory_for_that_the_connection_ends),
		TEST(an_idle_connection_ends_without_a_word),
		TEST(a_client_that_has_gone_is_forgotten),
		TEST(the_client_of_a_lost_connection_is_told),
		TEST(the_end_of_the_server_is_said),
		TEST(an_error_of_http3_is_said),
	};
	return RUN(tests);
}
