/* connection.c - see endpoint.h: the life of a connection, and what ngtcp2 asks of it. */
#include <openssl/rand.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/quic/endpoint.h"
#include "gatling/status/counters.h"

enum { STREAMS_AGAIN = STREAMS_MAX / 4 }; /* streams that have ended, before the client may open as many others */

static ngtcp2_conn *conn_of_ref(ngtcp2_crypto_conn_ref *ref) {
	return ((struct quic_connection *)ref->user_data)->conn;
}

/* Ends the connection with an error of HTTP/3, unless that is HTTP3_OK. Returns what a callback returns. */
static int fail(struct quic_connection *c, enum http3_error error) {
	if (error == HTTP3_OK) return 0;
	ngtcp2_ccerr_set_application_error(&c->error, (uint64_t)error, NULL, 0);
	return NGTCP2_ERR_CALLBACK_FAILURE;
}

/* --- what HTTP/3 asks for --- */

static void consumed(void *connection, int64_t id, uint64_t n) {
	struct quic_connection *c = connection;
	(void)ngtcp2_conn_extend_max_stream_offset(c->conn, id, n); /* the stream may be gone */
	ngtcp2_conn_extend_max_offset(c->conn, n);
	quic_wants_write(c);
}

/* Notes what ngtcp2 says: without memory the client would not hear of the end of a stream, so the connection ends. */
static void note_shutdown(struct quic_connection *c, int error) {
	if (error == NGTCP2_ERR_NOMEM) http3_streams(c->http3)->failed = true;
	quic_wants_write(c);
}

static void reset(void *connection, int64_t id, enum http3_error error) {
	struct quic_connection *c = connection;
	note_shutdown(c, ngtcp2_conn_shutdown_stream(c->conn, 0, id, (uint64_t)error));
}

static void stop(void *connection, int64_t id, enum http3_error error) {
	struct quic_connection *c = connection;
	note_shutdown(c, ngtcp2_conn_shutdown_stream_read(c->conn, 0, id, (uint64_t)error));
}

/* A copy of the socket's descriptor stands for the connection. Nothing is sent on it. */
static int reader(void *connection) {
	struct quic_connection *c = connection;
	struct quic_cookie *r = &c->reader;
	io_loop *loop = c->quic->context->loop;
	if (r->fd != -1) return r->fd;
	const int fd = dup(c->socket->fd);
	if (fd == -1) return -1;
	*r = (struct quic_cookie){.kind = COOKIE_QUIC, .is = QUIC_READER, .fd = fd, .quic = c->quic};
	if (io_fd(loop, fd, r) == 0) return fd;
	close(fd);
	r->fd = -1;
	return -1;
}

static void send_later(void *connection) { quic_wants_write(connection); }

static void close_later(void *connection) {
	struct quic_connection *c = connection;
	quic_close(c, HTTP3_INTERNAL_ERROR);
	quic_wants_write(c);
}

static const struct http3_transport transport = {.connection = {.send = send_later, .close = close_later},
												 .consumed = consumed,
												 .reset = reset,
												 .stop = stop,
												 .reader = reader};

/* --- callbacks --- */

static void make_random(uint8_t *to, size_t length, const ngtcp2_rand_ctx *unused) {
	(void)unused;
	if (RAND_bytes(to, (int)length) != 1) memset(to, 0, length); /* of no secret: padding and skipped numbers */
}

static int new_id(ngtcp2_conn *conn, ngtcp2_cid *cid, ngtcp2_stateless_reset_token *token, size_t length,
				  void *connection) {
	struct quic_connection *c = connection;
	(void)conn, (void)length;
	const bool made =
		quic_id_make(c->quic, cid) &&
		ngtcp2_crypto_generate_stateless_reset_token(token->data, quic_secret(c->quic), QUIC_SECRET, cid) == 0 &&
		quic_table_add(&c->quic->table, cid, c);
	return made ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

static int remove_id(ngtcp2_conn *conn, const ngtcp2_cid *cid, void *connection) {
	struct quic_connection *c = connection;
	(void)conn;
	quic_table_remove(&c->quic->table, cid, c);
	return 0;
}

/* TLS begins with the first bytes that could be decrypted, so that garbage costs little. What comes after the
 * handshake, when its SSL is freed, is nothing that a client may send. */
static int take_crypto(ngtcp2_conn *conn, ngtcp2_encryption_level level, uint64_t offset, const uint8_t *data,
					   size_t length, void *connection) {
	struct quic_connection *c = connection;
	if (!c->ssl && (c->open || !quic_handshake_begin(c))) return NGTCP2_ERR_CRYPTO;
	return ngtcp2_crypto_recv_crypto_data_cb(conn, level, offset, data, length, connection);
}

/* The server may send: HTTP/3 begins. */
static int begin_http3(ngtcp2_conn *conn, ngtcp2_encryption_level level, void *connection) {
	struct quic_connection *c = connection;
	int64_t id;
	if (level != NGTCP2_ENCRYPTION_LEVEL_1RTT || c->http3) return 0;
	const enum forwarding forwarding = forwarding_of(&c->quic->context->options->trust, &c->peer);
	c->http3 = http3_new(&c->quic->http3, &transport, c, &c->peer, forwarding, c->socket->port);
	if (!c->http3) return NGTCP2_ERR_CALLBACK_FAILURE;
	if (ngtcp2_conn_open_uni_stream(conn, &id, NULL) != 0) return fail(c, HTTP3_STREAM_CREATION_ERROR);
	struct http3_stream *control = http3_begin(c->http3, id);
	if (!control || ngtcp2_conn_set_stream_user_data(conn, id, control) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
	if (c->quic->context->draining) quic_drain_connection(c);
	return 0;
}

/* Has the connection count to the address of its client, if that is not the one it counts to: at the end of a handshake
 * without a Retry, and when the client has moved, as soon as it is known to receive there (RFC 9000, sections 8.1 and
 * 9.3). From then on that is the client for all that asks who it is; requests that have come by then keep the address
 * that they came from. Returns HTTP3_OK, or the error that ends the connection, which is refused there. */
static enum http3_error follow(struct quic_connection *c) {
	struct conn_context *w = c->quic->context;
	const struct peer peer = peer_of(ngtcp2_conn_get_path(c->conn)->remote.addr);
	if (!c->open || c->ended || c->moving || memcmp(&peer, &c->peer, sizeof peer) == 0) return HTTP3_OK;
	limits_return_connection(w->exchanges.limits, conn_owner(w, &c->peer));
	c->peer = peer_unknown; /* for which nothing is counted */
	if (w->refusal(w, &peer)) return HTTP3_EXCESSIVE_LOAD;
	c->peer = peer;
	streams_set_peer(http3_streams(c->http3), &peer, forwarding_of(&w->options->trust, &peer));
	return HTTP3_OK;
}

static int complete(ngtcp2_conn *conn, void *connection) {
	struct quic_connection *c = connection;
	(void)conn;
	c->open = true;
	c->since_ms = io_now(c->quic->context->loop);
	quic_half_open_remove(c);
	return fail(c, follow(c));
}

static int open_stream(ngtcp2_conn *conn, int64_t id, void *connection) {
	struct quic_connection *c = connection;
	struct http3_stream *q = http3_open(c->http3, id);
	return q && ngtcp2_conn_set_stream_user_data(conn, id, q) == 0 ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

static int take_data(ngtcp2_conn *conn, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t length,
					 void *connection, void *stream) {
	struct quic_connection *c = connection;
	(void)conn, (void)id, (void)offset;
	return fail(c, http3_receive(c->http3, stream, (struct slice){.at = (const char *)data, .length = length},
								 flags & NGTCP2_STREAM_DATA_FLAG_FIN));
}

static int take_acknowledgement(ngtcp2_conn *conn, int64_t id, uint64_t offset, uint64_t length, void *connection,
								void *stream) {
	const struct quic_connection *c = connection;
	(void)conn, (void)id, (void)offset;
	http3_acknowledged(c->http3, stream, length);
	return 0;
}

static int take_reset(ngtcp2_conn *conn, int64_t id, uint64_t final_size, uint64_t error, void *connection,
					  void *stream) {
	struct quic_connection *c = connection;
	(void)conn, (void)id, (void)final_size, (void)error;
	return stream ? fail(c, http3_cancelled(c->http3, stream)) : 0;
}

static int open_window(ngtcp2_conn *conn, int64_t id, uint64_t most, void *connection, void *stream) {
	(void)conn, (void)id, (void)most, (void)connection;
	if (stream) http3_block(stream, false);
	return 0;
}

/* Lets the client open others, STREAMS_AGAIN at a time: each frame that says so costs as much as a small response. */
static int close_stream(ngtcp2_conn *conn, uint32_t flags, int64_t id, uint64_t error, void *connection, void *stream) {
	struct quic_connection *c = connection;
	(void)flags, (void)error;
	const enum http3_error ended = stream ? http3_close(c->http3, stream) : HTTP3_OK;
	if (ended || !ngtcp2_is_bidi_stream(id)) return fail(c, ended);
	if (++c->streams_ended < STREAMS_AGAIN) return 0;
	ngtcp2_conn_extend_max_streams_bidi(conn, c->streams_ended);
	c->streams_ended = 0;
	return 0;
}

/* ngtcp2 validates the path that a client has moved to, with the former one to fall back to; or that one after it, with
 * none. It does not validate a path again on which the client has been of late. */
static int begin_validation(ngtcp2_conn *conn, uint32_t flags, const ngtcp2_path *path, const ngtcp2_path *former,
							void *connection) {
	struct quic_connection *c = connection;
	(void)conn, (void)flags, (void)path;
	c->moving = former;
	return 0;
}

static int end_validation(ngtcp2_conn *conn, uint32_t flags, const ngtcp2_path *path, const ngtcp2_path *former,
						  ngtcp2_path_validation_result result, void *connection) {
	struct quic_connection *c = connection;
	(void)conn, (void)flags, (void)path, (void)former, (void)result;
	c->moving = false;
	return 0;
}

void quic_set_callbacks(ngtcp2_callbacks *callbacks) {
	*callbacks = (ngtcp2_callbacks){.recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
									.recv_crypto_data = take_crypto,
									.encrypt = ngtcp2_crypto_encrypt_cb,
									.decrypt = ngtcp2_crypto_decrypt_cb,
									.hp_mask = ngtcp2_crypto_hp_mask_cb,
									.update_key = ngtcp2_crypto_update_key_cb,
									.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
									.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
									.get_path_challenge_data2 = ngtcp2_crypto_get_path_challenge_data2_cb,
									.version_negotiation = ngtcp2_crypto_version_negotiation_cb,
									.rand = make_random,
									.get_new_connection_id2 = new_id,
									.remove_connection_id = remove_id,
									.recv_tx_key = begin_http3,
									.handshake_completed = complete,
									.begin_path_validation = begin_validation,
									.path_validation = end_validation,
									.stream_open = open_stream,
									.recv_stream_data = take_data,
									.acked_stream_data_offset = take_acknowledgement,
									.stream_reset = take_reset,
									.extend_max_stream_data = open_window,
									.stream_close = close_stream};
}

/* --- life --- */

static ngtcp2_duration handshake_limit(const struct quic *e) {
	const int limit_s = e->context->options->head_timeout_s;
	return (ngtcp2_duration)(limit_s && limit_s < QUIC_HANDSHAKE_S ? limit_s : QUIC_HANDSHAKE_S) * NGTCP2_SECONDS;
}

/* Makes the ngtcp2_conn, which has the ID scid. */
static bool make_conn(struct quic_connection *c, const ngtcp2_pkt_hd *head, const ngtcp2_path *path,
					  const ngtcp2_cid *original, const ngtcp2_cid *scid) {
	struct quic *e = c->quic;
	ngtcp2_settings s;
	ngtcp2_transport_params p;
	ngtcp2_settings_default(&s);
	s.initial_ts = quic_now(e);
	s.cc_algo = e->bbr ? NGTCP2_CC_ALGO_BBR : NGTCP2_CC_ALGO_CUBIC;
	if (e->context->exchanges.upstreams) s.max_window = s.max_stream_window = QUIC_WINDOW_MAX;
	s.handshake_timeout = handshake_limit(e);
	ngtcp2_transport_params_default(&p);
	p.initial_max_streams_bidi = STREAMS_MAX;
	p.initial_max_streams_uni = HTTP3_UNI_STREAMS;
	p.initial_max_stream_data_bidi_remote = p.initial_max_stream_data_uni = HTTP3_STREAM_WINDOW;
	p.initial_max_data = QUIC_WINDOW;
	p.max_idle_timeout = QUIC_IDLE_S * NGTCP2_SECONDS;
	p.active_connection_id_limit = QUIC_IDS;
	p.original_dcid = original ? *original : head->dcid;
	p.original_dcid_present = p.stateless_reset_token_present = 1;
	if (original) { /* the client has sent the token of a Retry */
		s.token = head->token;
		s.tokenlen = head->tokenlen;
		s.token_type = NGTCP2_TOKEN_TYPE_RETRY;
		p.retry_scid = head->dcid;
		p.retry_scid_present = 1;
	}
	return ngtcp2_crypto_generate_stateless_reset_token(p.stateless_reset_token, quic_secret(e), QUIC_SECRET, scid) ==
			   0 &&
		   ngtcp2_conn_server_new(&c->conn, &head->scid, scid, path, head->version, &e->callbacks, &s, &p,
								  &c->allocator, c) == 0;
}

static void count(struct quic_connection *c) {
	struct conn_context *w = c->quic->context;
	if (!c->quic->connections++) quic_check_later(c->quic);
	quic_half_open_add(c);
	__atomic_store_n(&w->connections, w->connections + 1, __ATOMIC_RELAXED);
	count_one(COUNT_ACCEPTED);
	count_one(GAUGE_CONNECTIONS_HTTP3);
}

/* Takes an ended connection out of the sums, before it is freed: who makes room goes by them. */
static void uncount(struct quic_connection *c) {
	struct conn_context *w = c->quic->context;
	c->ended = true;
	c->quic->connections--;
	quic_half_open_remove(c);
	limits_return_connection(w->exchanges.limits, conn_owner(w, &c->peer));
	quic_update_memory(c);
	uncount_one(GAUGE_CONNECTIONS_HTTP3);
	__atomic_store_n(&w->connections, w->connections - 1, __ATOMIC_RELAXED);
}

/* Returns whether there is no memory for another connection of QUIC. */
static bool is_full(const struct conn_context *w) {
	return w->quic_memory > w->memory_max / BUDGET_QUIC || conn_context_memory(w) > w->memory_max;
}

/* Returns a connection with a number, or NULL without room or memory. */
static struct quic_connection *new_connection(struct quic *e) {
	struct quic_connection *c = e->context->make_room(e->context) ? calloc(1, sizeof *c) : NULL;
	if (!c) return NULL;
	c->quic = e;
	if (quic_place_add(c)) return c;
	free(c);
	return NULL;
}

struct quic_connection *quic_accept(struct quic *e, struct quic_cookie *socket, const ngtcp2_pkt_hd *head,
									const ngtcp2_path *path, const ngtcp2_cid *original) {
	const struct peer peer = original ? peer_of(path->remote.addr) : peer_unknown; /* until follow() */
	ngtcp2_cid scid;
	if (!e->handshaking.certificates || is_full(e->context) || !quic_half_open_room(e, &peer) ||
		e->context->refusal(e->context, &peer))
		return NULL;
	struct quic_connection *c = new_connection(e);
	if (!c) {
		limits_return_connection(e->context->exchanges.limits, conn_owner(e->context, &peer));
		return NULL;
	}
	c->socket = socket;
	c->peer = peer;
	c->validated = original;
	c->reader.fd = -1;
	c->allocator = quic_memory(&c->library_memory);
	c->since_ms = io_now(e->context->loop);
	c->ref = (ngtcp2_crypto_conn_ref){.get_conn = conn_of_ref, .user_data = c};
	ngtcp2_ccerr_default(&c->error);
	count(c);
	if (quic_id_make(e, &scid) && make_conn(c, head, path, original, &scid) && quic_table_add(&e->table, &scid, c) &&
		quic_table_add(&e->table, &head->dcid, c))
		return c;
	quic_free_connection(c);
	return NULL;
}

void quic_free_connection(struct quic_connection *c) {
	struct quic *e = c->quic;
	struct conn_context *w = e->context;
	if (!c->ended) uncount(c);
	quic_place_remove(c);
	io_alarm_cancel(w->loop, &c->alarm);
	quic_table_remove_all(&e->table, c);
	if (c->ssl) SSL_set_app_data(c->ssl, NULL);
	ngtcp2_conn_del(c->conn);
	http3_free(c->http3);
	ngtcp2_crypto_ossl_ctx_del(c->tls);
	SSL_free(c->ssl);
	if (c->reader.fd != -1) io_close(w->loop, c->reader.fd);
	free(c);
}

/* Handles what has come with a datagram. */
static enum http3_error received(struct quic_connection *c) {
	const enum http3_error error = follow(c);
	return error ? error : http3_received(c->http3);
}

void quic_take(struct quic_connection *c, const struct quic_datagram *d) {
	const ngtcp2_pkt_info info = {.ecn = d->ecn};
	if (c->ended) return;
	const int error = ngtcp2_conn_read_pkt(c->conn, &d->path, &info, d->bytes, d->length, quic_now(c->quic));
	/* NGTCP2_ERR_RETRY: part of a ClientHello has come before its beginning. It is kept, as of a client whose address
	 * was validated: how many others there may be is limited by QUIC_HALF_OPEN. */
	if (error && error != NGTCP2_ERR_RETRY) quic_end(c, error);
	else if (c->http3 && fail(c, received(c))) quic_end(c, NGTCP2_ERR_CALLBACK_FAILURE);
	quic_wants_write(c);
}

/* Returns whether the client is told of the end. */
static bool is_said(const struct quic_connection *c, int error) {
	return error != NGTCP2_ERR_DRAINING && error != NGTCP2_ERR_IDLE_CLOSE && error != NGTCP2_ERR_HANDSHAKE_TIMEOUT &&
		   error != NGTCP2_ERR_DROP_CONN && !ngtcp2_conn_in_draining_period(c->conn);
}

void quic_end(struct quic_connection *c, int error) {
	uint8_t packet[NGTCP2_MAX_UDP_PAYLOAD_SIZE];
	ngtcp2_path_storage path;
	ngtcp2_pkt_info info;
	if (c->ended) return;
	uncount(c);
	if (error == NGTCP2_ERR_HANDSHAKE_TIMEOUT) count_one(COUNT_CLOSED_LATE);
	if (!is_said(c, error)) return;
	if (!c->error.error_code && error == NGTCP2_ERR_CRYPTO)
		ngtcp2_ccerr_set_tls_alert(&c->error, ngtcp2_conn_get_tls_alert(c->conn), NULL, 0);
	else if (!c->error.error_code) ngtcp2_ccerr_set_liberr(&c->error, error, NULL, 0);
	ngtcp2_path_storage_zero(&path);
	const ngtcp2_ssize n = ngtcp2_conn_write_connection_close(c->conn, &path.path, &info, packet, sizeof packet,
															  &c->error, quic_now(c->quic));
	if (n > 0) quic_send(c->socket, &path.path, packet, (size_t)n);
}

void quic_close(struct quic_connection *c, enum http3_error error) {
	(void)fail(c, error);
	quic_end(c, NGTCP2_ERR_CALLBACK_FAILURE);
}

void quic_drain_connection(struct quic_connection *c) {
	if (!c->draining) c->since_ms = io_now(c->quic->context->loop);
	c->draining = true;
	if (c->http3 && c->quic->context->draining == DRAIN_IDLE) (void)http3_drain(c->http3);
	else if (c->http3) http3_announce_end(c->http3);
	quic_wants_write(c);
}

void quic_end_drained(struct quic_connection *c) {
	const bool half_open = !c->http3 && c->quic->context->draining < DRAIN_IDLE;
	if (!c->draining || half_open || (c->http3 && !http3_ended(c->http3))) return;
	quic_close(c, HTTP3_NO_ERROR);
}
