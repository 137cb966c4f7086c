/* client.c - see client.h. */
#include "tests/quic/client.h"

#include <openssl/rand.h>
#include <string.h>

#include "gatling/http3/session.h"
#include "tests/quic/require.h"
#include "tests/quic/server.h"

enum { ID_LENGTH = 8, HEADERS = 1, DATA = 0, WINDOW = 1 << 24, TURNS_MAX = 1000 * 1000 };

static struct client *clients[CLIENTS];

/* --- QUIC --- */

static ngtcp2_conn *conn_of(ngtcp2_crypto_conn_ref *ref) { return ((struct client *)ref->user_data)->conn; }

static void make_random(uint8_t *to, size_t length, const ngtcp2_rand_ctx *unused) {
	(void)unused;
	require(RAND_bytes(to, (int)length) == 1);
}

static int new_id(ngtcp2_conn *conn, ngtcp2_cid *cid, ngtcp2_stateless_reset_token *token, size_t length,
				  void *client) {
	(void)conn, (void)client;
	cid->datalen = length;
	return RAND_bytes(cid->data, (int)length) == 1 && RAND_bytes(token->data, sizeof token->data) == 1
			   ? 0
			   : NGTCP2_ERR_CALLBACK_FAILURE;
}

static int complete(ngtcp2_conn *conn, void *client) {
	(void)conn;
	((struct client *)client)->open = true;
	return 0;
}

static int take_retry(ngtcp2_conn *conn, const ngtcp2_pkt_hd *head, void *client) {
	((struct client *)client)->was_retried = true;
	return ngtcp2_crypto_recv_retry_cb(conn, head, client);
}

static int take_stateless_reset(ngtcp2_conn *conn, const ngtcp2_pkt_stateless_reset2 *packet, void *client) {
	(void)conn, (void)packet;
	((struct client *)client)->was_reset = true;
	return 0;
}

static int take_data(ngtcp2_conn *conn, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t length,
					 void *client, void *stream) {
	struct client_stream *s = stream;
	(void)offset, (void)client;
	(void)ngtcp2_conn_extend_max_stream_offset(conn, id, length);
	ngtcp2_conn_extend_max_offset(conn, length);
	if (!s) return 0; /* the server's own */
	if (s->received + length > s->room) {
		s->room = 2 * (s->received + length);
		s->in = realloc(s->in, s->room);
		require(s->in);
	}
	if (length) memcpy(s->in + s->received, data, length);
	s->received += length;
	s->ended |= flags & NGTCP2_STREAM_DATA_FLAG_FIN;
	return 0;
}

static int take_reset(ngtcp2_conn *conn, int64_t id, uint64_t size, uint64_t error, void *client, void *stream) {
	struct client_stream *s = stream;
	(void)conn, (void)id, (void)size, (void)error, (void)client;
	if (s) s->reset = true;
	return 0;
}

/* The client whose packet is encrypted: ngtcp2 does not say. */
static struct client *writing;

/* Puts frames, and padding, in the place of those of a packet. */
static void replace(struct slice *frames, uint8_t *plain, size_t length) {
	const size_t n = frames->length < length ? frames->length : length;
	if (!n) return;
	memcpy(plain, frames->at, n);
	memset(plain + n, 0, length - n);
	frames->length = 0;
}

static int encrypt(uint8_t *to, const ngtcp2_crypto_aead *aead, const ngtcp2_crypto_aead_ctx *context,
				   const uint8_t *plain, size_t length, const uint8_t *nonce, size_t nonce_length, const uint8_t *data,
				   size_t data_length) {
	uint8_t copy[NETWORK_DATAGRAM];
	require(length <= sizeof copy);
	memcpy(copy, plain, length);
	if (writing) replace(&writing->frames, copy, length);
	return ngtcp2_crypto_encrypt_cb(to, aead, context, copy, length, nonce, nonce_length, data, data_length);
}

static const ngtcp2_callbacks callbacks = {.client_initial = ngtcp2_crypto_client_initial_cb,
										   .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
										   .handshake_completed = complete,
										   .encrypt = encrypt,
										   .decrypt = ngtcp2_crypto_decrypt_cb,
										   .hp_mask = ngtcp2_crypto_hp_mask_cb,
										   .recv_stream_data = take_data,
										   .recv_retry = take_retry,
										   .rand = make_random,
										   .update_key = ngtcp2_crypto_update_key_cb,
										   .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
										   .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
										   .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
										   .stream_reset = take_reset,
										   .recv_stateless_reset2 = take_stateless_reset,
										   .get_new_connection_id2 = new_id,
										   .get_path_challenge_data2 = ngtcp2_crypto_get_path_challenge_data2_cb};

static void begin_tls(struct client *c) {
	static const unsigned char alpn[] = "\2h3";
	static SSL_CTX *context;
	if (!context) context = SSL_CTX_new(TLS_client_method());
	require(context && (c->ssl = SSL_new(context)) && ngtcp2_crypto_ossl_ctx_new(&c->tls, c->ssl) == 0);
	SSL_set_connect_state(c->ssl);
	c->ref = (ngtcp2_crypto_conn_ref){.get_conn = conn_of, .user_data = c};
	require(SSL_set_app_data(c->ssl, &c->ref) && SSL_set_tlsext_host_name(c->ssl, "localhost"));
	require(SSL_set_alpn_protos(c->ssl, alpn, sizeof alpn - 1) == 0);
	require(ngtcp2_crypto_ossl_configure_client_session(c->ssl) == 0);
	ngtcp2_conn_set_tls_native_handle(c->conn, c->tls);
}

struct client *client_new(unsigned number) {
	struct client *c = calloc(1, sizeof *c);
	union io_address local = network_client(number), remote = network_server();
	ngtcp2_path path = {.local = {.addr = &local.any, .addrlen = sizeof local.ipv4},
						.remote = {.addr = &remote.any, .addrlen = sizeof remote.ipv4}};
	ngtcp2_cid own = {.datalen = ID_LENGTH}, server = {.datalen = ID_LENGTH};
	ngtcp2_settings s;
	ngtcp2_transport_params p;
	require(c && number < CLIENTS && !clients[number]);
	require(RAND_bytes(own.data, ID_LENGTH) == 1 && RAND_bytes(server.data, ID_LENGTH) == 1);
	ngtcp2_settings_default(&s);
	s.initial_ts = (uint64_t)network_now_ns();
	ngtcp2_transport_params_default(&p);
	p.initial_max_stream_data_bidi_local = p.initial_max_stream_data_uni = p.initial_max_data = WINDOW;
	p.initial_max_streams_uni = 3;
	require(ngtcp2_conn_client_new(&c->conn, &server, &own, &path, NGTCP2_PROTO_VER_V1, &callbacks, &s, &p, NULL, c) ==
			0);
	begin_tls(c);
	c->address = local;
	c->number = number;
	c->error = UINT64_MAX;
	clients[number] = c;
	client_send(c, true, SLICE("\0\4\0"), false); /* control, with no settings */
	return c;
}

void client_free(struct client *c) {
	clients[c->number] = NULL;
	ngtcp2_conn_del(c->conn);
	SSL_set_app_data(c->ssl, NULL);
	ngtcp2_crypto_ossl_ctx_del(c->tls);
	SSL_free(c->ssl);
	for (unsigned i = 0; i < c->streams; i++) free(c->stream[i].in);
	free(c);
}

static void end(struct client *c, int error) {
	const ngtcp2_ccerr *said = ngtcp2_conn_get_ccerr(c->conn);
	c->ended = true;
	c->why = error;
	if (error == NGTCP2_ERR_DRAINING && !c->was_reset) c->error = said->error_code;
}

static void take(struct client *c, const struct packet *p) {
	const ngtcp2_pkt_info info = {.ecn = p->ecn};
	union io_address local = network_client(c->number), remote = network_server();
	const ngtcp2_path path = {.local = {.addr = &local.any, .addrlen = sizeof local.ipv4},
							  .remote = {.addr = &remote.any, .addrlen = sizeof remote.ipv4}};
	if (c->ended || c->silent) return;
	c->marks += p->ecn == ECN_CE;
	const int error = ngtcp2_conn_read_pkt(c->conn, &path, &info, p->bytes, p->length, (uint64_t)network_now_ns());
	if (error) end(c, error);
}

static bool may_send(struct client *c, struct client_stream *s) {
	if (s->id != -1) return s->sent < s->length || (s->ends && !s->end_sent);
	return (s->uni ? ngtcp2_conn_open_uni_stream(c->conn, &s->id, s)
				   : ngtcp2_conn_open_bidi_stream(c->conn, &s->id, s)) == 0;
}

/* Writes a packet. Returns its length; 0: there is nothing to send. */
static ngtcp2_ssize write_packet(struct client *c, ngtcp2_pkt_info *info, uint8_t *to, size_t room) {
	struct client_stream none = {.id = -1}, *s = &none;
	ngtcp2_ssize taken = -1;
	for (unsigned i = 0; i < c->streams && s == &none; i++)
		if (may_send(c, &c->stream[i])) s = &c->stream[i];
	const ngtcp2_vec left = {.base = (uint8_t *)s->out + s->sent, .len = s->length - s->sent};
	const ngtcp2_ssize n = ngtcp2_conn_writev_stream(
		c->conn, NULL, info, to, room, &taken, s->ends ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE,
		s->id, &left, s != &none, (uint64_t)network_now_ns());
	if (taken >= 0) s->sent += (size_t)taken;
	if ((taken >= 0 && s->sent == s->length) || n == NGTCP2_ERR_STREAM_SHUT_WR || n == NGTCP2_ERR_STREAM_NOT_FOUND) {
		s->end_sent = s->ends;
		s->sent = s->length;
	}
	return n;
}

static void write_all(struct client *c) {
	uint8_t packet[NETWORK_DATAGRAM];
	ngtcp2_pkt_info info;
	writing = c;
	while (!c->ended && !c->silent) {
		const ngtcp2_ssize n = write_packet(c, &info, packet, sizeof packet);
		if (n == NGTCP2_ERR_STREAM_SHUT_WR || n == NGTCP2_ERR_STREAM_NOT_FOUND) continue;
		if (n < 0) end(c, (int)n);
		if (n <= 0) break;
		if (c->garble) c->garble(packet, (size_t)n);
		network_send(&c->address, packet, (size_t)n, info.ecn);
	}
	ngtcp2_conn_update_pkt_tx_time(c->conn, (uint64_t)network_now_ns());
	writing = NULL;
}

void client_close(struct client *c, uint64_t error) {
	uint8_t packet[NETWORK_DATAGRAM];
	ngtcp2_pkt_info info;
	ngtcp2_ccerr why;
	ngtcp2_ccerr_default(&why);
	ngtcp2_ccerr_set_application_error(&why, error, NULL, 0);
	const ngtcp2_ssize n = ngtcp2_conn_write_connection_close(c->conn, NULL, &info, packet, sizeof packet, &why,
															  (uint64_t)network_now_ns());
	require(n > 0);
	network_send(&c->address, packet, (size_t)n, info.ecn);
	end(c, 0);
}

/* --- HTTP/3 --- */

struct client_stream *client_send(struct client *c, bool uni, struct slice octets, bool ends) {
	require(c->streams < CLIENT_STREAMS && octets.length <= CLIENT_STREAM_SENT);
	struct client_stream *s = &c->stream[c->streams++];
	*s = (struct client_stream){.id = -1, .uni = uni, .ends = ends, .length = octets.length};
	memcpy(s->out, octets.at, octets.length);
	return s;
}

void client_send_frames(struct client *c, struct slice frames) {
	static const char room[CLIENT_STREAM_SENT];
	c->frames = frames;
	client_send(c, false, (struct slice){.at = room, .length = sizeof room}, false);
}

struct client_stream *client_get(struct client *c, const char *path) {
	/* entries 17, 23 and 0 of the static table of QPACK, and 1, the path */
	static const char head[] = "\0\0\xd1\xd7\x50\x09localhost\x51";
	char octets[CLIENT_STREAM_SENT], *at = octets + 2;
	memcpy(at, head, sizeof head - 1);
	at += sizeof head - 1;
	*at++ = (char)strlen(path);
	at = stpcpy(at, path);
	octets[0] = HEADERS;
	octets[1] = (char)(at - octets - 2);
	require(octets[1] < 64);
	return client_send(c, false, (struct slice){.at = octets, .length = (size_t)(at - octets)}, true);
}

bool client_has_got(const struct client_stream *s, const char *content, size_t length) {
	struct slice left = {.at = s->in, .length = s->received};
	uint64_t type, n;
	size_t got = 0;
	if (!s->ended || s->reset) return false;
	for (bool has_head = false; left.length; has_head = true) {
		if (!http3_integer(&left, &type) || !http3_integer(&left, &n) || n > left.length ||
			type != (has_head ? DATA : HEADERS))
			return false;
		if (!has_head && (n < 3 || (unsigned char)left.at[2] != 0xd9)) return false; /* :status 200 is entry 25 */
		if (has_head && (n > length - got || memcmp(content + got, left.at, (size_t)n) != 0)) return false;
		got += has_head ? (size_t)n : 0;
		left = slice_rest(left, (size_t)n);
	}
	return got == length;
}

/* --- time --- */

static int64_t expiry_of(const struct client *c) {
	const ngtcp2_tstamp at = ngtcp2_conn_get_expiry(c->conn);
	return c->ended || c->silent || at == UINT64_MAX ? INT64_MAX : (int64_t)at;
}

static void run_clients(void) {
	for (struct packet *p; (p = network_take()); free(p)) {
		const unsigned number = ntohs(p->client.ipv4.sin_port) - ntohs(network_client(0).ipv4.sin_port);
		if (number < CLIENTS && clients[number]) take(clients[number], p);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *c = clients[i];
		if (!c || c->ended) continue;
		const int error =
			expiry_of(c) <= network_now_ns() ? ngtcp2_conn_handle_expiry(c->conn, (uint64_t)network_now_ns()) : 0;
		if (error) end(c, error);
		write_all(c);
	}
}

static int64_t next_ns(void) {
	int64_t next = network_next_ns(), other = server_next_ns();
	if (other < next) next = other;
	for (unsigned i = 0; i < CLIENTS; i++)
		if (clients[i] && (other = expiry_of(clients[i])) < next) next = other;
	return next;
}

bool pass_until(bool (*done)(void), int limit_ms) {
	const int64_t until = network_now_ns() + (int64_t)limit_ms * 1000000;
	for (int i = 0; i < TURNS_MAX; i++) {
		run_clients();
		server_turn();
		if (done && done()) return true;
		const int64_t next = next_ns();
		if (next > until) {
			if (until > network_now_ns()) network_set_now(until); /* the server's work may have taken longer */
			return false;
		}
		network_set_now(next > network_now_ns() ? next : network_now_ns() + 1);
	}
	require(!"time stands still");
	return false;
}
