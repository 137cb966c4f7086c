/* test_quic_probe.c - the server announces HTTP/3 as long as datagrams come through to its port. */
#include "gatling/base/notice.h"
#include "tests/quic/fixture.h"

enum { TURN_MS = 100, AGAIN_MS = QUIC_PROBE_AGAIN_MS + QUIC_PROBE_MS, GIVEN_UP_MS = (QUIC_PROBES + 1) * QUIC_PROBE_MS };

static struct fate lose_all(bool to_server, unsigned number) {
	(void)number;
	return (struct fate){.copies = !to_server, .delay_ms = NETWORK_DELAY_MS};
}

static struct fate lose_next(bool to_server, unsigned number) {
	if (to_server) network_set_fate(NULL);
	return lose_all(to_server, number);
}

/* Lets time pass on a worker that always has something to do. */
static void busy(int ms) {
	for (; ms > 0; ms -= TURN_MS) pass(TURN_MS);
}

/* As after the start. */
static void begin(void) {
	struct quic *e = server_quic();
	client->silent = true;
	e->reachable = false;
	e->probed_ms -= QUIC_PROBE_AGAIN_MS;
}

static void it_is_announced_when_a_datagram_has_come_through(void **state) {
	(void)state;
	begin();
	assert_int_equal(quic_port(server_quic()), 0);
	pass(3 * NETWORK_DELAY_MS);
	assert_int_equal(quic_port(server_quic()), server_quic()->cookie->port);
}

static void it_is_not_where_none_does_and_the_owner_is_told(void **state) {
	(void)state;
	const unsigned before = notices();
	network_set_fate(lose_all);
	begin();
	pass(GIVEN_UP_MS); /* nobody else does anything */
	assert_int_equal(quic_port(server_quic()), 0);
	assert_int_equal(notices(), before + 1);
	busy(AGAIN_MS);
	assert_int_equal(notices(), before + 1);
	network_set_fate(NULL);
	busy(2 * QUIC_PROBE_MS);
	assert_int_not_equal(quic_port(server_quic()), 0);
}

static void it_is_no_more_when_none_does_any_more(void **state) {
	(void)state;
	begin();
	busy(AGAIN_MS);
	assert_int_not_equal(quic_port(server_quic()), 0);
	network_set_fate(lose_all);
	busy(AGAIN_MS + GIVEN_UP_MS);
	assert_int_equal(quic_port(server_quic()), 0);
}

static void one_that_is_lost_changes_nothing(void **state) {
	(void)state;
	begin();
	pass(3 * NETWORK_DELAY_MS);
	for (int i = 0; i < 2 * QUIC_PROBES; i++) {
		network_set_fate(lose_next);
		busy(AGAIN_MS);
		assert_int_not_equal(quic_port(server_quic()), 0);
	}
}

/* Answers to unknown versions are limited. */
static void strangers_do_not_change_it(void **state) {
	(void)state;
	const union io_address stranger = network_client(1);
	uint8_t packet[QUIC_INITIAL_MIN] = {0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, [14] = 8};
	begin();
	for (int passed = 0; passed < AGAIN_MS + GIVEN_UP_MS; passed += TURN_MS) {
		for (int i = 0; i < QUIC_STRAYS; i++) network_send(&stranger, packet, sizeof packet, 0);
		pass(TURN_MS);
	}
	assert_int_not_equal(quic_port(server_quic()), 0);
}

static void another_worker_may_receive_it(void **state) {
	(void)state;
	server_close();
	server_open(2);
	client_free(client);
	client = client_new(0);
	begin();
	server_choose(1);
	pass(3 * NETWORK_DELAY_MS);
	assert_int_not_equal(quic_port(server_quic()), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(it_is_announced_when_a_datagram_has_come_through),
		TEST(it_is_not_where_none_does_and_the_owner_is_told),
		TEST(it_is_no_more_when_none_does_any_more),
		TEST(one_that_is_lost_changes_nothing),
		TEST(strangers_do_not_change_it),
		TEST(another_worker_may_receive_it),
	};
	return RUN(tests);
}
