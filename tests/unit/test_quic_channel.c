/* test_quic_channel.c - datagrams that workers and processes hand over to each other, and messages that none of them
 * writes. */
#include "tests/quic/fixture.h"

enum { MESSAGE_HEAD = 128, LONG_MS = 20000, TRIES = 64 };

static struct client_stream *stream;

static unsigned messages; /* that were sent */

/* Where the next one is wrong, and what is there. */
static size_t wrong_at;
static uint8_t wrong;

static bool is_answered(void) { return client_has_got(stream, server_content, SERVER_SMALL_LENGTH); }

static void assert_is_answered(void) {
	stream = client_get(client, SERVER_SMALL);
	assert_true(pass_until(is_answered, LONG_MS));
}

/* --- what becomes of the next message --- */

static void count(uint8_t *message, size_t *length) {
	(void)message, (void)length;
	messages++;
}

static void change_one(uint8_t *message, size_t *length) {
	if (wrong_at < *length) message[wrong_at] = wrong;
	messages++;
	network_set_change(count);
}

static void cut(uint8_t *message, size_t *length) {
	(void)message;
	if (wrong_at < *length) *length = wrong_at;
	messages++;
	network_set_change(count);
}

/* Makes a client of worker 1, whose datagrams come to worker 0. */
static void begin(void) {
	messages = 0;
	for (int i = 0; i < TRIES && !messages; i++) {
		client_free(client);
		client = client_new(0);
		network_set_change(count);
		assert_is_answered();
	}
	assert_true(messages);
}

static void a_worker_gets_what_another_one_receives(void **state) {
	(void)state;
	begin();
	server_choose(1);
	messages = 0;
	assert_is_answered();
	assert_int_equal(messages, 0);
}

/* Has the next message changed. The clients are answered nevertheless. */
static void assert_ends_nothing(void change(uint8_t *message, size_t *length)) {
	if (client->streams == CLIENT_STREAMS || client->ended) begin();
	network_set_change(change);
	assert_is_answered();
}

static void a_message_with_an_octet_that_is_wrong_ends_nothing(void **state) {
	(void)state;
	static const uint8_t values[] = {0, 2, 10, 0xff};
	begin();
	for (size_t i = 0; i < MESSAGE_HEAD * sizeof values; i++) {
		wrong_at = i / sizeof values;
		wrong = values[i % sizeof values];
		assert_ends_nothing(change_one);
	}
}

static void a_message_that_is_too_short_ends_nothing(void **state) {
	(void)state;
	begin();
	for (wrong_at = 0; wrong_at < MESSAGE_HEAD; wrong_at++) assert_ends_nothing(cut);
}

static void the_process_before_keeps_its_connections(void **state) {
	(void)state;
	begin();
	server_succeed(2);
	messages = 0;
	assert_is_answered();
	assert_true(messages);
	client_free(client);
	client = client_new(1);
	assert_is_answered();
	assert_true(server_worker(1, 0)->connections || server_worker(1, 1)->connections);
}

static void a_process_that_has_ended_is_asked_no_more(void **state) {
	(void)state;
	begin();
	server_succeed(2);
	server_end(0);
	client_free(client);
	client = client_new(1);
	assert_is_answered();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_worker_gets_what_another_one_receives),   TEST(a_message_with_an_octet_that_is_wrong_ends_nothing),
		TEST(a_message_that_is_too_short_ends_nothing),  TEST(the_process_before_keeps_its_connections),
		TEST(a_process_that_has_ended_is_asked_no_more),
	};
	server_workers = 2;
	return RUN(tests);
}
