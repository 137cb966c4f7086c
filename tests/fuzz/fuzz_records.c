/* fuzz_records.c - whatever a client seals into records of TLS 1.3, and whatever becomes of them on the way: what is
 * opened is what was sealed, whole and in order, and a record that was changed is refused. For libFuzzer: clang
 * -fsanitize=fuzzer,address,undefined. */
#include <openssl/ssl.h>
#include <stdlib.h>

#include "gatling/tls/records.h"
#include "tests/fuzz/input.h"

enum { UPDATE = 0, CHANGE = 1, STEPS = 8, MOST = 255 };

static char wire[MOST + RECORD_ROOM], opened[sizeof wire];
static struct records *client, *server;

static void require(bool holds) {
	if (!holds) abort();
}

/* Opens what is on the wire, which comes in two parts. */
static enum record_result receive(size_t sealed, size_t *length) {
	struct slice input = {.at = wire, .length = octet() % sealed};
	require(records_open(server, &input, opened, length) == RECORD_PART || *length == 0);
	input = (struct slice){.at = wire, .length = sealed};
	const enum record_result result = records_open(server, &input, opened, length);
	require(result == RECORD_FAILED || result == RECORD_PART || !input.length);
	return result;
}

/* Returns the plaintext without padding: content, and its type at the end. */
static struct slice inner(struct slice content, uint8_t type, char *copy) {
	memcpy(copy, content.at, content.length);
	copy[content.length] = (char)type;
	size_t end = content.length + 1;
	while (end && !copy[end - 1]) end--;
	return (struct slice){.at = copy, .length = end};
}

/* Sends a record. Returns whether the connection goes on. */
static bool step(void) {
	const uint8_t what = octet() % STEPS;
	size_t length;
	if (what == UPDATE) return receive(records_renew(client, wire), &length) == RECORD_RENEWED;
	const uint8_t type = octet();
	const struct slice content = octets(octet());
	char copy[MOST + 1];
	const struct slice plain = inner(content, type, copy);
	const size_t sealed = records_seal(client, (enum record_type)type, content.at, content.length, wire);
	require(sealed == content.length + RECORD_OVERHEAD);
	const uint8_t bit = 1U << octet() % 8;
	if (what == CHANGE) wire[octet() % sealed] ^= (char)bit;
	const enum record_result result = receive(sealed, &length);
	require(what != CHANGE || result == RECORD_FAILED || result == RECORD_PART);
	if (length) require(result == RECORD_CONTENT && length == plain.length - 1 && !memcmp(opened, plain.at, length));
	if (result == RECORD_FAILED) require(records_alert(server, records_fault(server), wire) > 0);
	if (what != CHANGE && plain.length > 1 && plain.at[plain.length - 1] == RECORD_APPLICATION_DATA)
		require(length || records_fault(server) == ALERT_UNEXPECTED_MESSAGE); /* within another message */
	return result == RECORD_CONTENT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct record_methods *methods;
	static SSL_CTX *context;
	const struct traffic up = {.secret = "up"}, down = {.secret = "down"};
	if (!methods) methods = record_methods_new();
	if (!context) context = SSL_CTX_new(TLS_server_method());
	const SSL_CIPHER *suite = sk_SSL_CIPHER_value(SSL_CTX_get_ciphers(context), 0); /* one of TLS 1.3 comes first */
	client = records_new(methods, suite, &down, &up);
	server = records_new(methods, suite, &up, &down);
	require(client && server);
	input_set(data, size);
	while (input_left() && step()) continue;
	records_free(client);
	records_free(server);
	return 0;
}
