/* test_quic_limits.c - clients that take more than they were given, or send what is of no use. Others are served. */
#include "gatling/status/counters.h"
#include "tests/quic/fixture.h"

/* RFC 9000, section 20.1. */
enum { FLOW_CONTROL_ERROR = 3, STREAM_LIMIT_ERROR = 4, CONNECTION_ID_LIMIT_ERROR = 9, CRYPTO_BUFFER_EXCEEDED = 13 };

enum { SHORT_MS = 1000, FRAMES = 512, PACKETS = CLIENT_STREAMS - 2, ID_LENGTH = 8, CHALLENGE_LENGTH = 9, IDLE = 24 };
enum { AMPLIFICATION = 3, ANSWERED = 4 /* of the challenges in a datagram, by ngtcp2 */ };
enum { STREAM_AT = 0x0e /* with an offset and a length */, CRYPTO = 6, NEW_ID = 0x18, CHALLENGE = 0x1a };

static struct client_stream *stream;

static bool is_answered(void) { return client_has_got(stream, server_content, SERVER_SMALL_LENGTH); }

static void assert_serves(struct client *c) {
	stream = client_get(c, SERVER_SMALL);
	assert_true(pass_until(is_answered, SHORT_MS));
}

/* Another client is served meanwhile. */
static void assert_serves_another(void) {
	struct client *other = client_new(1);
	assert_serves(other);
	client_free(other);
}

/* --- frames --- */

static char frames[FRAMES];
static size_t length;

static void put(uint8_t octet) { frames[length++] = (char)octet; }

/* An integer of four bytes (section 16). */
static void put_integer(uint32_t n) {
	put((uint8_t)(n >> 24 | 0x80));
	for (int shift = 16; shift >= 0; shift -= 8) put((uint8_t)(n >> shift));
}

/* One octet of a stream, or of the handshake. */
static void put_octet_at(uint8_t type, uint32_t id, uint32_t offset) {
	put(type);
	if (type != CRYPTO) put_integer(id);
	put_integer(offset);
	put_integer(1);
	put(0);
}

static void put_id(uint8_t number) {
	put(NEW_ID);
	put(number);
	put(0); /* retire_prior_to */
	put(ID_LENGTH);
	for (unsigned i = 0; i < ID_LENGTH + sizeof(ngtcp2_stateless_reset_token); i++) put(number);
}

static void put_challenge(uint8_t number) {
	put(CHALLENGE);
	for (int i = 1; i < CHALLENGE_LENGTH; i++) put(number);
}

static void send_frames(void) {
	client_send_frames(client, (struct slice){.at = frames, .length = length});
	pass(3 * NETWORK_DELAY_MS);
	length = 0;
}

static void assert_goes_on(void) {
	send_frames();
	assert_false(client->ended);
}

static void assert_ends_with(uint64_t error) {
	send_frames();
	assert_true(client->ended);
	assert_int_equal(client->error, error);
	assert_serves_another();
}

static int set_up_open(void **state) {
	length = 0;
	(void)set_up(state);
	pass(6 * NETWORK_DELAY_MS);
	return client->open ? 0 : -1;
}

/* --- what is given --- */

static void a_stream_has_a_window(void **state) {
	(void)state;
	put_octet_at(STREAM_AT, 0, HTTP3_STREAM_WINDOW - 1);
	assert_goes_on();
	put_octet_at(STREAM_AT, 0, HTTP3_STREAM_WINDOW);
	assert_ends_with(FLOW_CONTROL_ERROR);
}

static void all_streams_have_a_window(void **state) {
	(void)state;
	uint32_t id = 0;
	for (; (id / 4 + 1) * HTTP3_STREAM_WINDOW < QUIC_WINDOW; id += 4)
		put_octet_at(STREAM_AT, id, HTTP3_STREAM_WINDOW - 1);
	assert_goes_on();
	put_octet_at(STREAM_AT, id, HTTP3_STREAM_WINDOW - 1); /* and some octets of the control stream */
	assert_ends_with(FLOW_CONTROL_ERROR);
}

static void so_many_streams_of_one_direction_may_be_open(void **state) {
	(void)state;
	put_octet_at(STREAM_AT, 4 * (HTTP3_UNI_STREAMS - 1) + 2, 1);
	assert_goes_on();
	put_octet_at(STREAM_AT, 4 * HTTP3_UNI_STREAMS + 2, 1);
	assert_ends_with(STREAM_LIMIT_ERROR);
}

static void so_many_connection_ids_are_kept(void **state) {
	(void)state;
	put_id(QUIC_IDS); /* the client has given all others by itself */
	assert_ends_with(CONNECTION_ID_LIMIT_ERROR);
}

static void so_much_of_a_handshake_is_kept(void **state) {
	(void)state;
	put_octet_at(CRYPTO, 0, 1 << 17);
	assert_ends_with(CRYPTO_BUFFER_EXCEEDED);
}

/* No more than they take now. */
static void when_memory_runs_short_those_give_way_that_are_idle_longest(void **state) {
	(void)state;
	struct conn_context *w = server_quic()->context;
	struct client *idle[IDLE];
	const size_t memory_max = w->memory_max;
	for (unsigned i = 0; i < IDLE; i++) {
		idle[i] = client_new(2 + i);
		assert_serves(idle[i]);
		pass(QUIC_CHECK_MS);
	}
	w->memory_max = BUDGET_QUIC * w->quic_memory;
	assert_serves_another();
	w->memory_max = memory_max;
	assert_true(client->ended);
	assert_int_equal(client->error, HTTP3_NO_ERROR);
	assert_false(idle[IDLE - 1]->ended);
	for (unsigned i = 0; i < IDLE; i++) client_free(idle[i]);
}

static void each_head_has_its_time(void **state) {
	(void)state;
	enum { HEAD_S = 3 };
	server_options()->head_timeout_s = HEAD_S;
	const struct client_stream *late = client_send(client, false, SLICE("\1\20"), false); /* a HEADERS frame begins */
	for (int i = 0; i < HEAD_S; i++) {
		assert_false(late->reset);
		assert_serves(client);
		pass(1000 - 3 * NETWORK_DELAY_MS);
	}
	pass(QUIC_CHECK_MS);
	assert_true(late->reset);
	assert_serves(client);
}

static bool may_send(void) {
	const struct quic_connection *c = server_quic()->places ? server_quic()->place[0] : NULL;
	return c && c->http3 && !c->open;
}

static struct fate loses_what_clients_send(bool to_server, unsigned number) {
	(void)number;
	return (struct fate){.copies = !to_server, .delay_ms = NETWORK_DELAY_MS};
}

/* It is not idle before its end, though the server could send already. */
static void a_handshake_has_its_time(void **state) {
	(void)state;
	const struct quic *e = server_quic();
	const uint64_t late = counters_value(counters, COUNT_CLOSED_LATE);
	const uint64_t idle = counters_value(counters, COUNT_CLOSED_KEEPALIVE);
	server_options()->keepalive_timeout_s = 2;
	assert_true(pass_until(may_send, SHORT_MS));
	network_set_fate(loses_what_clients_send);
	pass((QUIC_HANDSHAKE_S - 1) * 1000);
	assert_int_equal(e->connections, 1);
	pass(1000 + QUIC_CHECK_MS);
	assert_int_equal(e->connections, 0);
	assert_int_equal(counters_value(counters, COUNT_CLOSED_LATE) - late, 1);
	assert_int_equal(counters_value(counters, COUNT_CLOSED_KEEPALIVE) - idle, 0);
}

/* --- floods --- */

/* Sends as many as fit into PACKETS packets. Returns what has been sent meanwhile. */
static struct network_sums send_challenges(void) {
	const struct network_sums before = network_sums;
	struct network_sums sums = network_sums;
	for (int packets = 0; packets < PACKETS; packets++) {
		while (length + CHALLENGE_LENGTH <= sizeof frames) put_challenge((uint8_t)packets);
		assert_goes_on();
	}
	for (int to_server = 0; to_server < 2; to_server++) {
		sums.datagrams[to_server] = network_sums.datagrams[to_server] - before.datagrams[to_server];
		sums.bytes[to_server] = network_sums.bytes[to_server] - before.bytes[to_server];
	}
	return sums;
}

static void few_challenges_of_a_datagram_are_answered(void **state) {
	(void)state;
	const struct network_sums sums = send_challenges();
	assert_true(sums.datagrams[false] <= (ANSWERED + 1) * PACKETS);
	assert_serves(client);
	assert_serves_another();
}

/* Section 9.3.1: it may be that of a victim. */
static void an_address_that_is_not_validated_gets_three_times_what_it_sent(void **state) {
	(void)state;
	client->address = network_client(2);
	const struct network_sums sums = send_challenges();
	assert_true(sums.bytes[false] <= AMPLIFICATION * sums.bytes[true]);
	client->address = network_client(0);
	assert_serves(client);
	assert_serves_another();
}

static void send_unknown_versions(unsigned count) {
	const union io_address stranger = network_client(2);
	const uint8_t packet[QUIC_INITIAL_MIN] = {0xc0, 0xfa, 0xfa, 0xfa, 0xfa, 8, [14] = 8};
	while (count--) network_send(&stranger, packet, sizeof packet, 0);
	pass(3 * NETWORK_DELAY_MS);
}

static void so_many_versions_are_negotiated_in_a_second(void **state) {
	(void)state;
	pass(1000 - (int)(network_now_ns() / 1000000 % 1000)); /* a second begins */
	unsigned before = network_sums.datagrams[false];
	send_unknown_versions(3 * QUIC_STRAYS);
	assert_int_equal(network_sums.datagrams[false] - before, QUIC_STRAYS);
	pass(1000);
	before = network_sums.datagrams[false];
	send_unknown_versions(1);
	assert_int_equal(network_sums.datagrams[false] - before, 1);
	send_unknown_versions(3 * QUIC_STRAYS);
	assert_serves(client);
	assert_serves_another();
}

#define TEST_OPEN(name) cmocka_unit_test_setup_teardown(name, set_up_open, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST_OPEN(a_stream_has_a_window),
		TEST_OPEN(all_streams_have_a_window),
		TEST_OPEN(so_many_streams_of_one_direction_may_be_open),
		TEST_OPEN(so_many_connection_ids_are_kept),
		TEST_OPEN(so_much_of_a_handshake_is_kept),
		TEST_OPEN(when_memory_runs_short_those_give_way_that_are_idle_longest),
		TEST_OPEN(each_head_has_its_time),
		TEST(a_handshake_has_its_time),
		TEST_OPEN(few_challenges_of_a_datagram_are_answered),
		TEST_OPEN(an_address_that_is_not_validated_gets_three_times_what_it_sent),
		TEST_OPEN(so_many_versions_are_negotiated_in_a_second),
	};
	return RUN(tests);
}
