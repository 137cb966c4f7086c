/* test_quic_loss.c - a handshake and requests over a network that loses, doubles, delays and marks datagrams. */
#include "tests/quic/fixture.h"
#include "tests/unit/dice.h"

enum { HANDSHAKE_MS = 10000, LONG_MS = 120000, SEEDS = 20, FILES = 4 };

static struct client_stream *stream[FILES];
static unsigned files;
static const char *content_of; /* what is asked for */

static void ask(unsigned count, const char *path) {
	content_of = path;
	for (files = 0; files < count; files++) stream[files] = client_get(client, path);
}

static bool has_all(void) {
	const size_t length = strcmp(content_of, SERVER_LARGE) == 0 ? SERVER_LARGE_LENGTH : SERVER_SMALL_LENGTH;
	for (unsigned i = 0; i < files; i++)
		if (!client_has_got(stream[i], server_content, length)) return false;
	return true;
}

static void a_request_is_answered(void **state) {
	(void)state;
	ask(1, SERVER_SMALL);
	assert_true(pass_until(has_all, 6 * NETWORK_DELAY_MS));
	assert_false(client->ended);
}

/* --- the handshake --- */

static unsigned lost; /* the number of the datagram that is lost */

static struct fate lose_one(bool to_server, unsigned number) {
	(void)to_server;
	return (struct fate){.copies = number != lost, .delay_ms = NETWORK_DELAY_MS};
}

static void each_datagram_may_be_lost(void **state) {
	unsigned all = 1;
	for (lost = 0; lost < all; lost++) {
		network_set_fate(lose_one);
		ask(1, SERVER_SMALL);
		if (!pass_until(has_all, HANDSHAKE_MS)) fail_msg("without the datagram %u there is no answer", lost);
		all = network_sums.datagrams[0] + network_sums.datagrams[1];
		(void)tear_down(state);
		(void)set_up(state);
	}
	assert_true(all >= 6);
}

/* --- after it, too --- */

/* Of a handshake nothing is lost: of one in 200 so much would be that it takes more than QUIC_HANDSHAKE_S. */
static struct fate rough(bool to_server, unsigned number) {
	(void)to_server, (void)number;
	const unsigned copies = dice(5) || !client->open ? 1 + !dice(10) : 0;
	return (struct fate){.copies = copies, .delay_ms = NETWORK_DELAY_MS + (dice(4) ? 0 : (int)dice(50))};
}

static void files_come_whole_over_a_rough_network(void **state) {
	for (int i = 0; i < SEEDS; i++) {
		server_quic()->bbr = i % 2;
		network_set_fate(rough);
		ask(FILES, i % 4 ? SERVER_SMALL : SERVER_LARGE);
		if (!pass_until(has_all, LONG_MS)) fail_msg("the answers of network %d are not complete", i);
		assert_false(client->ended);
		network_set_fate(NULL);
		(void)tear_down(state);
		(void)set_up(state);
	}
}

static void what_the_socket_does_not_take_is_sent_later(void **state) {
	ngtcp2_conn_info info;
	(void)state;
	pass(6 * NETWORK_DELAY_MS);
	assert_true(client->open);
	ask(FILES, SERVER_LARGE);
	for (int i = 0; i < 4; i++) {
		network_fill(true);
		assert_false(pass_until(has_all, 20));
		network_fill(false);
		(void)pass_until(has_all, 20);
	}
	assert_true(pass_until(has_all, HANDSHAKE_MS));
	ngtcp2_conn_get_conn_info(server_quic()->place[0]->conn, &info);
	assert_int_equal(info.pkt_lost, 0);
}

/* --- explicit congestion notification (RFC 9000, section 13.4; RFC 9002, section 7.1) --- */

static struct fate mark(bool to_server, unsigned number) {
	return (struct fate){.copies = 1, .delay_ms = NETWORK_DELAY_MS, .marked = !to_server && number % 16 == 0};
}

/* Returns the congestion window with which a file has come. */
static uint64_t window_of(struct fate fate(bool, unsigned)) {
	ngtcp2_conn_info info;
	pass(10 * NETWORK_DELAY_MS);
	network_set_fate(fate);
	ask(FILES, SERVER_LARGE);
	assert_true(pass_until(has_all, LONG_MS));
	assert_non_null(server_quic()->place[0]);
	ngtcp2_conn_get_conn_info(server_quic()->place[0]->conn, &info);
	return info.cwnd;
}

static void marks_of_congestion_make_the_server_send_less(void **state) {
	const uint64_t without = window_of(NULL);
	assert_int_equal(client->marks, 0);
	assert_true(network_sums.marked[0] > 100);
	(void)tear_down(state);
	(void)set_up(state);
	const uint64_t with = window_of(mark);
	assert_true(client->marks > 10);
	if (with >= without / 2) fail_msg("%zu bytes instead of %zu", (size_t)with, (size_t)without);
}

static struct fate mark_all(bool to_server, unsigned number) {
	(void)number;
	return (struct fate){.copies = 1, .delay_ms = NETWORK_DELAY_MS, .marked = to_server};
}

static void marks_of_congestion_are_reported_to_the_client(void **state) {
	ngtcp2_conn_info info;
	(void)state;
	for (int i = 0; i < 2; i++) {
		pass(10 * NETWORK_DELAY_MS);
		ask(1, SERVER_SMALL);
		assert_true(pass_until(has_all, HANDSHAKE_MS));
		ngtcp2_conn_get_conn_info(client->conn, &info);
		assert_true((info.ssthresh == UINT64_MAX) == (i == 0));
		network_set_fate(mark_all);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_answered),
		TEST(each_datagram_may_be_lost),
		TEST(files_come_whole_over_a_rough_network),
		TEST(what_the_socket_does_not_take_is_sent_later),
		TEST(marks_of_congestion_make_the_server_send_less),
		TEST(marks_of_congestion_are_reported_to_the_client),
	};
	return RUN(tests);
}
