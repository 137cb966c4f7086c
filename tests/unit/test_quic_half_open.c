/* test_quic_half_open.c - how many handshakes may be under way, and which one gives way. */
#include "gatling/quic/endpoint.h"
#include "tests/unit/check.h"

static struct conn_options options;
static struct conn_context context = {.options = &options};

/* Returns an address of IPv4, one of each network. */
static struct peer address(unsigned n) {
	struct peer peer = {.address.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0}};
	peer.address.s6_addr[14] = (uint8_t)(n >> 8);
	peer.address.s6_addr[15] = (uint8_t)n;
	return peer;
}

/* Begins so many handshakes from addresses that begin with that number, the first ones without a token. */
static void begin(struct quic *e, struct quic_connection *c, unsigned count, unsigned first, unsigned addresses,
				  unsigned unvalidated) {
	*e = (struct quic){.context = &context};
	for (unsigned i = 0; i < count; i++) {
		c[i] =
			(struct quic_connection){.quic = e, .peer = address(first + i % addresses), .validated = i >= unvalidated};
		quic_half_open_add(&c[i]);
	}
}

static void an_address_with_many_may_begin_no_more(void **state) {
	(void)state;
	static struct quic_connection c[2 * QUIC_HALF_OPEN_ADDRESS];
	static struct quic e;
	const struct peer many = address(1), other = address(2);
	begin(&e, c, QUIC_HALF_OPEN_ADDRESS - 1, 1, 1, 0);
	assert_true(quic_half_open_room(&e, &many));
	begin(&e, c, QUIC_HALF_OPEN_ADDRESS, 1, 1, 0);
	assert_false(quic_half_open_room(&e, &many));
	assert_true(quic_half_open_room(&e, &other));
	quic_half_open_remove(&c[3]);
	quic_half_open_remove(&c[3]);
	assert_int_equal(e.half_open, QUIC_HALF_OPEN_ADDRESS - 1);
	assert_true(quic_half_open_room(&e, &many));
	begin(&e, c, 2 * QUIC_HALF_OPEN_ADDRESS, 1, 2, 0);
	assert_false(quic_half_open_room(&e, &many));
	assert_false(quic_half_open_room(&e, &other));
}

static void when_there_are_too_many_the_oldest_without_a_token_gives_way(void **state) {
	(void)state;
	static struct quic_connection c[QUIC_HALF_OPEN_MAX];
	static struct quic e;
	const struct peer other = address(0);
	begin(&e, c, QUIC_HALF_OPEN_MAX, 1, QUIC_HALF_OPEN_MAX, 2);
	quic_half_open_remove(&c[0]);
	quic_half_open_add(&c[0]); /* now it is the newest */
	assert_true(quic_half_open_room(&e, &other));
	assert_true(c[1].ended && !c[1].half_open && !c[0].ended);
	assert_int_equal(e.half_open, QUIC_HALF_OPEN_MAX - 1);
	assert_ptr_equal(quic_next_unsent(&e), &c[1]); /* it is freed at the end of the turn */
	assert_true(quic_half_open_room(&e, &other));
	assert_int_equal(e.half_open, QUIC_HALF_OPEN_MAX - 1);
}

static void when_all_have_a_token_the_oldest_gives_way(void **state) {
	(void)state;
	static struct quic_connection c[QUIC_HALF_OPEN_MAX];
	static struct quic e;
	const struct peer other = address(0);
	begin(&e, c, QUIC_HALF_OPEN_MAX, 1, QUIC_HALF_OPEN_MAX, 0);
	assert_true(quic_half_open_room(&e, &other));
	assert_true(c[0].ended);
	assert_ptr_equal(e.oldest, &c[1]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_with_many_may_begin_no_more),
		cmocka_unit_test(when_there_are_too_many_the_oldest_without_a_token_gives_way),
		cmocka_unit_test(when_all_have_a_token_the_oldest_gives_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
