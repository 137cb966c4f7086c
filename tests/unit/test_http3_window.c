/* test_http3_window.c - the client may send as much again as it has sent on a stream, however that ends. */
#include "gatling/http3/http3.h"
#include "tests/unit/check.h"

static uint64_t again; /* bytes that the client may send */

static void ignore(void *connection) { (void)connection; }

static void consumed(void *connection, int64_t id, uint64_t n) {
	(void)connection, (void)id;
	again += n;
}

static void ignore_error(void *connection, int64_t id, enum http3_error error) {
	(void)connection, (void)id, (void)error;
}

static const struct http3_transport transport = {
	.connection = {.send = ignore, .close = ignore}, .consumed = consumed, .reset = ignore_error, .stop = ignore_error};
static struct site_context site;
static const struct exchange_context exchanges = {.site = &site};
static const struct http3_context context = {.exchanges = &exchanges, .memory_max = 65536};

static struct http3 *http3;
static struct http3_stream *stream;

static int set_up(void **state) {
	static const struct peer peer;
	(void)state;
	again = 0;
	http3 = http3_new(&context, &transport, NULL, &peer, FORWARDING_NONE, 443);
	stream = http3 ? http3_open(http3, 0) : NULL;
	return stream ? 0 : -1;
}

static int tear_down(void **state) {
	(void)state;
	http3_free(http3);
	return 0;
}

static void receive(void) {
	const struct slice part = SLICE("\1\x20part of a section");
	assert_int_equal(http3_receive(http3, stream, part, false), HTTP3_OK);
}

static const uint64_t length = 19;

static void what_has_been_handled_may_be_sent_again(void **state) {
	(void)state;
	receive();
	assert_int_equal(http3_received(http3), HTTP3_OK);
	assert_int_equal(again, length);
	assert_int_equal(http3_close(http3, stream), HTTP3_OK);
	assert_int_equal(again, length);
}

static void so_may_what_comes_with_the_end_of_its_stream(void **state) {
	(void)state;
	receive();
	assert_int_equal(http3_close(http3, stream), HTTP3_OK);
	assert_int_equal(http3_received(http3), HTTP3_OK);
	assert_int_equal(again, length);
}

static void nothing_is_sent_again_when_the_connection_has_ended(void **state) {
	(void)state;
	receive();
	http3_free(http3);
	http3 = NULL;
	assert_int_equal(again, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(what_has_been_handled_may_be_sent_again),
		TEST(so_may_what_comes_with_the_end_of_its_stream),
		TEST(nothing_is_sent_again_when_the_connection_has_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
