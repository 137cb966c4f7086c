/* fuzz_quic.c - whatever datagrams come, and whatever frames are in packets that the server can decrypt, it keeps
 * nothing of a connection that has ended, and serves the next client. For libFuzzer: clang
 * -fsanitize=fuzzer,address,undefined.
 *
 * A client of ngtcp2 makes the packets; the input says what is put in the place of their payloads before they are
 * encrypted, and of the octets of datagrams after that. */
#include "tests/fuzz/input.h"
#include "tests/quic/client.h"
#include "tests/quic/require.h"
#include "tests/quic/server.h"

enum { OTHERS = 4, LONG_MS = 20000, ID_AT = 1 };

/* --- what is put in the place of what --- */

static struct slice xored;
static size_t xored_at;

static void change_datagram(uint8_t *datagram, size_t datagram_length) {
	for (size_t i = 0; i < xored.length && xored_at + i < datagram_length; i++)
		datagram[xored_at + i] ^= (uint8_t)xored.at[i];
	xored.length = 0;
}

/* --- steps --- */

static struct client *client;

static void send_raw(unsigned from, struct slice s, bool short_header) {
	uint8_t datagram[NETWORK_DATAGRAM] = {0x40};
	const union io_address address = network_client(from);
	const ngtcp2_cid *id = ngtcp2_conn_get_dcid(client->conn);
	const size_t head = short_header ? ID_AT + id->datalen : 0;
	if (short_header) memcpy(datagram + ID_AT, id->data, id->datalen);
	memcpy(datagram + head, s.at, s.length);
	if (head + s.length) network_send(&address, datagram, head + s.length, from & 3);
}

static bool may_send(void) { return client->streams < CLIENT_STREAMS; }

static void step(void) {
	const uint8_t what = octet();
	switch (what & 7) {
	case 0: pass(what >> 3); break;
	case 1: pass((what >> 3) * 100); break;
	case 2: send_raw(what >> 6, octets((size_t)octet() * 4), what & 8); break;
	case 3: {
		const struct slice s = octets(octet());
		if (may_send()) client_send_frames(client, s);
		if (what & 8) pass(1);
		break;
	}
	case 4:
		xored_at = (size_t)(what >> 3) * (what & 0x80 ? 16 : 1);
		xored = octets(octet() & 15);
		break;
	case 5:
		if (may_send()) client_get(client, what & 8 ? SERVER_LARGE : SERVER_SMALL);
		break;
	case 6: {
		const struct slice s = octets(octet());
		if (may_send()) client_send(client, what & 8, s, what & 16);
		break;
	}
	default:
		if (what & 8) quic_drain(server_quic(), what & 16);
		else if (what & 32 && !client->ended && client->open) client_close(client, what);
		else if (what & 64) client->address = network_client(what >> 6);
	}
}

/* --- the next client --- */

static struct client_stream *stream;

static bool has_got(void) { return client_has_got(stream, server_content, SERVER_SMALL_LENGTH); }

static void serve_another(void) {
	struct client *other = client_new(OTHERS);
	stream = client_get(other, SERVER_SMALL);
	require(pass_until(has_got, LONG_MS));
	client_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_length);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_length) {
	static bool is_set_up;
	if (!is_set_up) server_set_up();
	is_set_up = true;
	input_set(input, input_length);
	xored.length = 0;
	server_open(1);
	const uint8_t how = octet();
	if (how & 1) server_quic()->half_open += QUIC_HALF_OPEN; /* it validates addresses */
	client = client_new(0);
	client->garble = change_datagram;
	if (!(how & 2)) pass(10 * NETWORK_DELAY_MS);
	while (input_left()) step();
	pass(10 * NETWORK_DELAY_MS);
	client_free(client);
	if (how & 4 && !server_quic()->draining) serve_another();
	if (how & 1) server_quic()->half_open -= QUIC_HALF_OPEN;
	server_close();
	return 0;
}
