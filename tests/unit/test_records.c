/* test_records.c - the records of TLS 1.3 against OpenSSL's, and against those of clients that err. */
#include "tests/unit/check.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include "gatling/tls/records.h"

enum { SUITES = 3 };

static struct {
	struct record_methods *methods;
	SSL_CTX *context;
	const SSL_CIPHER *suite[SUITES];
} f;

static int set_up(void **state) {
	(void)state;
	f.methods = record_methods_new();
	f.context = SSL_CTX_new(TLS_server_method());
	if (!f.methods || !f.context) return -1;
	STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(f.context);
	for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
		const SSL_CIPHER *c = sk_SSL_CIPHER_value(all, i);
		const unsigned place = SSL_CIPHER_get_protocol_id(c) - 0x1301u;
		if (place < SUITES) f.suite[place] = c;
	}
	return f.suite[0] && f.suite[1] && f.suite[2] ? 0 : -1;
}

static int tear_down(void **state) {
	(void)state;
	SSL_CTX_free(f.context);
	record_methods_free(f.methods);
	return 0;
}

/* Two sides of a connection: each opens what the other one seals. */
struct sides {
	struct records *client, *server;
};

static struct sides sides_after(const SSL_CIPHER *suite, uint64_t records) {
	const struct traffic up = {.secret = "up", .records = records}, down = {.secret = "down", .records = records};
	const struct sides s = {.client = records_new(f.methods, suite, &down, &up),
							.server = records_new(f.methods, suite, &up, &down)};
	assert_true(s.client && s.server);
	return s;
}

static struct sides sides_new(void) { return sides_after(f.suite[0], 0); }

static void sides_free(struct sides s) {
	records_free(s.client);
	records_free(s.server);
}

static char wire[2 * RECORD_MAX], content[RECORD_CONTENT_MAX + 1], opened[RECORD_MAX];

/* Opens n bytes from the wire as the server. */
static enum record_result receive(struct sides s, size_t n, size_t *length) {
	struct slice input = {.at = wire, .length = n};
	return records_open(s.server, &input, opened, length);
}

/* What the client sends as one record fails with this alert. */
static void refuses(struct sides s, enum record_type type, const void *text, size_t length, enum record_alert alert) {
	size_t n;
	assert_int_equal(receive(s, records_seal(s.client, type, text, length, wire), &n), RECORD_FAILED);
	assert_int_equal(records_fault(s.server), alert);
	assert_int_equal(n, 0);
	sides_free(s);
}

static void content_of_each_length_comes_back(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof content; i++) content[i] = (char)(i * 7);
	for (size_t k = 0; k < SUITES; k++) {
		struct sides s = sides_after(f.suite[k], 0);
		for (size_t length = 1; length <= RECORD_CONTENT_MAX; length += length < 300 ? 1 : 1231) {
			size_t got, sealed = records_seal(s.client, RECORD_APPLICATION_DATA, content, length, wire);
			assert_int_equal(sealed, length + RECORD_OVERHEAD);
			assert_int_equal(receive(s, sealed, &got), RECORD_CONTENT);
			assert_int_equal(got, length);
			assert_memory_equal(opened, content, length);
		}
		sides_free(s);
	}
}

static void input_may_end_anywhere_and_go_on(void **state) {
	(void)state;
	struct sides s = sides_new();
	size_t got;
	const size_t first = records_seal(s.client, RECORD_APPLICATION_DATA, "one", 3, wire);
	const size_t both = first + records_seal(s.client, RECORD_APPLICATION_DATA, "three", 5, wire + first);
	for (size_t n = 0; n < first; n++) assert_int_equal(receive(s, n, &got), RECORD_PART);
	struct slice input = {.at = wire, .length = both};
	assert_int_equal(records_open(s.server, &input, opened, &got), RECORD_CONTENT);
	assert_int_equal(got, 3);
	assert_int_equal(input.length, both - first);
	assert_int_equal(records_open(s.server, &input, opened, &got), RECORD_CONTENT);
	assert_memory_equal(opened, "three", 5);
	assert_int_equal(records_open(s.server, &input, opened, &got), RECORD_PART);
	sides_free(s);
}

/* A type of 0 is read as padding, which ends at the last octet that is not 0 (RFC 8446, section 5.4). */
static void padding_is_no_content(void **state) {
	(void)state;
	struct sides s = sides_new();
	size_t got;
	assert_int_equal(receive(s, records_seal(s.client, 0, "hello\27\0\0\0", 9, wire), &got), RECORD_CONTENT);
	assert_int_equal(got, 5);
	assert_memory_equal(opened, "hello", 5);
	memset(content, 0, sizeof content);
	content[0] = 'x';
	content[1] = RECORD_APPLICATION_DATA;
	assert_int_equal(receive(s, records_seal(s.client, 0, content, RECORD_CONTENT_MAX, wire), &got), RECORD_CONTENT);
	assert_int_equal(got, 1);
	sides_free(s);
	refuses(sides_new(), 0, "\0\0\0", 3, ALERT_UNEXPECTED_MESSAGE);
	refuses(sides_new(), 0, "", 0, ALERT_UNEXPECTED_MESSAGE);
}

static void a_bit_that_differs_is_noticed(void **state) {
	(void)state;
	for (unsigned bit = 0; bit < 8 * (3 + RECORD_OVERHEAD); bit++) {
		struct sides s = sides_new();
		size_t got, n = records_seal(s.client, RECORD_APPLICATION_DATA, "abc", 3, wire);
		wire[bit / 8] = (char)(wire[bit / 8] ^ 1 << bit % 8);
		const enum record_result result = receive(s, n, &got);
		assert_int_equal(got, 0);
		assert_true(result == RECORD_FAILED || (result == RECORD_PART && bit / 8 >= 3 && bit / 8 < 5)); /* the length */
		sides_free(s);
	}
}

static void a_record_is_taken_once(void **state) {
	(void)state;
	struct sides s = sides_new();
	size_t got, n = records_seal(s.client, RECORD_APPLICATION_DATA, "abc", 3, wire);
	assert_int_equal(receive(s, n, &got), RECORD_CONTENT);
	assert_int_equal(receive(s, n, &got), RECORD_FAILED);
	assert_int_equal(records_fault(s.server), ALERT_BAD_RECORD_MAC);
	sides_free(s);
}

static void what_no_client_may_send_is_refused(void **state) {
	static const struct {
		char header[5];
		enum record_alert alert;
	} bare[] = {
		{"\x14\3\3\0\1", ALERT_UNEXPECTED_MESSAGE}, /* change_cipher_spec */
		{"\x15\3\3\0\2", ALERT_UNEXPECTED_MESSAGE}, /* an alert that is not encrypted */
		{"\x17\3\3\x41\1", ALERT_RECORD_OVERFLOW},
		{"\x17\3\3\0\x10", ALERT_BAD_RECORD_MAC}, /* no type */
	};
	(void)state;
	for (size_t i = 0; i < COUNT(bare); i++) {
		struct sides s = sides_new();
		size_t got;
		memset(wire, 0, sizeof wire);
		memcpy(wire, bare[i].header, sizeof bare[i].header);
		assert_int_equal(receive(s, sizeof wire, &got), RECORD_FAILED);
		assert_int_equal(records_fault(s.server), bare[i].alert);
		sides_free(s);
	}
	refuses(sides_new(), RECORD_APPLICATION_DATA, content, RECORD_CONTENT_MAX + 1, ALERT_RECORD_OVERFLOW);
	refuses(sides_new(), 20, "\1", 1, ALERT_UNEXPECTED_MESSAGE);
	refuses(sides_new(), RECORD_ALERT, "", 0, ALERT_UNEXPECTED_MESSAGE);
	refuses(sides_new(), RECORD_ALERT, "\1", 1, ALERT_DECODE_ERROR);
	refuses(sides_new(), RECORD_ALERT, "\1\0\0", 3, ALERT_DECODE_ERROR);
	refuses(sides_new(), RECORD_ALERT, "\2\50", 2, ALERT_CLOSE_NOTIFY);                /* it knows why */
	refuses(sides_new(), RECORD_HANDSHAKE, "\1\0\0\1\0", 5, ALERT_UNEXPECTED_MESSAGE); /* a ClientHello */
	refuses(sides_new(), RECORD_HANDSHAKE, "", 0, ALERT_UNEXPECTED_MESSAGE);
	refuses(sides_new(), RECORD_HANDSHAKE, "\30\0\0\1\2", 5, ALERT_ILLEGAL_PARAMETER);
	refuses(sides_new(), RECORD_HANDSHAKE, "\30\0\0\2\0", 5, ALERT_DECODE_ERROR);
	refuses(sides_new(), RECORD_HANDSHAKE, "\30\0\0\1\0\30", 6, ALERT_UNEXPECTED_MESSAGE);
}

static void nothing_comes_between_parts_of_a_message(void **state) {
	(void)state;
	struct sides s = sides_new();
	size_t got;
	assert_int_equal(receive(s, records_seal(s.client, RECORD_HANDSHAKE, "\30\0\0", 3, wire), &got), RECORD_CONTENT);
	assert_int_equal(got, 0);
	refuses(s, RECORD_APPLICATION_DATA, "x", 1, ALERT_UNEXPECTED_MESSAGE);
	s = sides_new();
	assert_int_equal(receive(s, records_seal(s.client, RECORD_HANDSHAKE, "\30\0\0", 3, wire), &got), RECORD_CONTENT);
	assert_int_equal(receive(s, records_seal(s.client, RECORD_HANDSHAKE, "\1\0", 2, wire), &got), RECORD_RENEWED);
	sides_free(s);
}

static void the_end_is_told(void **state) {
	(void)state;
	struct sides s = sides_new();
	size_t got;
	assert_int_equal(receive(s, records_seal(s.client, RECORD_ALERT, "\1\132", 2, wire), &got), RECORD_CONTENT);
	assert_int_equal(got, 0);
	assert_int_equal(receive(s, records_alert(s.client, ALERT_CLOSE_NOTIFY, wire), &got), RECORD_END);
	sides_free(s);
}

static void records_without_content_are_few(void **state) {
	(void)state;
	struct sides s = sides_new();
	size_t got;
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < RECORDS_EMPTY_MAX; i++)
			assert_int_equal(receive(s, records_seal(s.client, RECORD_APPLICATION_DATA, "", 0, wire), &got),
							 RECORD_CONTENT);
		if (!turn)
			assert_int_equal(receive(s, records_seal(s.client, RECORD_APPLICATION_DATA, "x", 1, wire), &got),
							 RECORD_CONTENT);
	}
	refuses(s, RECORD_APPLICATION_DATA, "", 0, ALERT_UNEXPECTED_MESSAGE);
}

static void keys_are_renewed_by_either_side(void **state) {
	(void)state;
	for (size_t k = 0; k < SUITES; k++) {
		struct sides s = sides_after(f.suite[k], 0);
		size_t got;
		for (int turn = 0; turn < 3; turn++) {
			assert_int_equal(receive(s, records_renew(s.client, wire), &got), RECORD_RENEWED);
			assert_int_equal(receive(s, records_seal(s.client, RECORD_APPLICATION_DATA, "x", 1, wire), &got),
							 RECORD_CONTENT);
			assert_int_equal(got, 1);
			struct slice input = {.at = wire, .length = records_renew(s.server, wire)};
			assert_int_equal(records_open(s.client, &input, opened, &got), RECORD_RENEWED);
		}
		sides_free(s);
	}
	struct sides s = sides_new();
	size_t got;
	assert_int_equal(receive(s, records_seal(s.client, RECORD_HANDSHAKE, "\30\0\0\1\1", 5, wire), &got), RECORD_ASKED);
	sides_free(s);
}

static void a_worn_key_is_replaced(void **state) {
	(void)state;
	struct sides s = sides_after(f.suite[0], RECORDS_OF_A_KEY - 1);
	size_t got, n = records_seal(s.client, RECORD_APPLICATION_DATA, "x", 1, wire);
	assert_int_equal(n, 1 + RECORD_OVERHEAD);
	assert_int_equal(receive(s, n, &got), RECORD_CONTENT);
	n = records_seal(s.client, RECORD_APPLICATION_DATA, "y", 1, wire);
	assert_int_equal(n, 1 + RECORD_ROOM);
	struct slice input = {.at = wire, .length = n};
	assert_int_equal(records_open(s.server, &input, opened, &got), RECORD_RENEWED);
	assert_int_equal(records_open(s.server, &input, opened, &got), RECORD_CONTENT);
	assert_int_equal(opened[0], 'y');
	assert_int_equal(records_seal(s.client, RECORD_APPLICATION_DATA, "z", 1, wire), 1 + RECORD_OVERHEAD);
	sides_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_of_each_length_comes_back),
		cmocka_unit_test(input_may_end_anywhere_and_go_on),
		cmocka_unit_test(padding_is_no_content),
		cmocka_unit_test(a_bit_that_differs_is_noticed),
		cmocka_unit_test(a_record_is_taken_once),
		cmocka_unit_test(what_no_client_may_send_is_refused),
		cmocka_unit_test(nothing_comes_between_parts_of_a_message),
		cmocka_unit_test(the_end_is_told),
		cmocka_unit_test(records_without_content_are_few),
		cmocka_unit_test(keys_are_renewed_by_either_side),
		cmocka_unit_test(a_worn_key_is_replaced),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
