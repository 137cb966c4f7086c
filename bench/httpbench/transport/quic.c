/* quic.c - see quic.h. The server knows a connection by its socket: the client's connection IDs are empty. */
#include "bench/httpbench/transport/quic.h"

#include <errno.h>
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_ossl.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/client/http3_frames.h"
#include "bench/machine.h"
#include "io/datagram.h"

enum {
	SERVER_ID_FIRST = 18, /* random bytes that name the server at first: 8 at least (RFC 9000, section 7.2) */
	SERVER_STREAM_WINDOW = 64 * 1024, /* bytes that the server may send on each stream of its own */
	RECEIVE_BUFFER = 4 * 1024 * 1024, /* bytes of a socket's queue: datagrams that find it full are lost */
	IDLE_S = 60,                      /* of silence, after which the connection has ended */
	ALERTS = 0x100,                   /* an error of TLS is this and the alert (RFC 9001, section 4.8), */
	ALERT_NO_PROTOCOL = 120           /* such as no_application_protocol */
};

struct quic_thread {
	struct quic_settings settings;
	const struct quic_owner *calls;
	ngtcp2_callbacks callbacks;
	struct io_received *received;
	char packets[IO_DATAGRAM_BYTES];
};

struct quic {
	struct quic_thread *thread;
	const struct quic_owner *calls;
	void *owner;
	io_loop *loop;
	int fd;
	struct io_alarm *alarm;
	ngtcp2_conn *conn;
	ngtcp2_path path;
	union io_address local, server;
	ngtcp2_crypto_conn_ref ref;
	ngtcp2_crypto_ossl_ctx *crypto;
	tls_stream *tls;
	struct io_datagrams held; /* what the socket did not take; bytes NULL: nothing */
	uint64_t error;           /* of HTTP/3, with which the owner ends the connection; 0: none */
	bool open, ended;
	bool reset;      /* by a stateless reset */
	bool agreed_not; /* the server did not choose HTTP/3 */
	char why[QUIC_TEXT];
};

bool quic_libraries(char *text) {
	snprintf(text, QUIC_TEXT, "HTTP/3: ngtcp2 %s, nghttp3 %s", ngtcp2_version(0)->version_str,
			 nghttp3_version(0)->version_str);
	return true;
}

const char *quic_why(const struct quic *q) { return q->why; }

static ngtcp2_tstamp now(const struct quic *q) { return (ngtcp2_tstamp)*q->thread->settings.now_ns; }

/* --- the end --- */

/* Sets the reason for the end, and errno. Returns -1. */
__attribute__((format(printf, 3, 4))) static int end(struct quic *q, int error, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(q->why, sizeof q->why, format, arguments);
	va_end(arguments);
	q->ended = true;
	errno = error;
	return -1;
}

static const char *transport_error(uint64_t code) {
	static const char *const name[] = {"NO_ERROR",
									   "INTERNAL_ERROR",
									   "CONNECTION_REFUSED",
									   "FLOW_CONTROL_ERROR",
									   "STREAM_LIMIT_ERROR",
									   "STREAM_STATE_ERROR",
									   "FINAL_SIZE_ERROR",
									   "FRAME_ENCODING_ERROR",
									   "TRANSPORT_PARAMETER_ERROR",
									   "CONNECTION_ID_LIMIT_ERROR",
									   "PROTOCOL_VIOLATION",
									   "INVALID_TOKEN",
									   "APPLICATION_ERROR",
									   "CRYPTO_BUFFER_EXCEEDED",
									   "KEY_UPDATE_ERROR",
									   "AEAD_LIMIT_REACHED",
									   "NO_VIABLE_PATH"};
	return code < sizeof name / sizeof *name ? name[code] : NULL;
}

/* Ends a connection that the server has closed. */
static int end_closed(struct quic *q) {
	const ngtcp2_ccerr *e = ngtcp2_conn_get_ccerr(q->conn);
	const bool application = e->type == NGTCP2_CCERR_TYPE_APPLICATION;
	const char *name = application ? http3_code_name(e->error_code) : transport_error(e->error_code);
	char number[32];
	if (!application && e->error_code == ALERTS + ALERT_NO_PROTOCOL)
		return end(q, EPROTO, "the server does not speak HTTP/3 (it has not agreed to h3 by ALPN)");
	if (!application && e->error_code >= ALERTS && e->error_code < 2 * ALERTS)
		return end(q, EPROTO, "the server's alert: %s", SSL_alert_desc_string_long((int)(e->error_code - ALERTS)));
	snprintf(number, sizeof number, "error 0x%llx", (unsigned long long)e->error_code);
	return end(q, e->error_code == (application ? HTTP3_NO_ERROR : NGTCP2_NO_ERROR) ? ENODATA : ECONNRESET,
			   "connection closed by the server: %s", name ? name : number);
}

/* Tells the server about the end, and why: an error of ngtcp2, or the owner's. */
static void say_end(struct quic *q, int error) {
	ngtcp2_ccerr e;
	ngtcp2_pkt_info info;
	ngtcp2_ccerr_default(&e);
	if (error == NGTCP2_ERR_CRYPTO) ngtcp2_ccerr_set_tls_alert(&e, ngtcp2_conn_get_tls_alert(q->conn), NULL, 0);
	else if (error && error != NGTCP2_ERR_CALLBACK_FAILURE) ngtcp2_ccerr_set_liberr(&e, error, NULL, 0);
	else ngtcp2_ccerr_set_application_error(&e, q->error ? q->error : HTTP3_NO_ERROR, NULL, 0);
	const ngtcp2_ssize n = ngtcp2_conn_write_connection_close(q->conn, NULL, &info, (uint8_t *)q->thread->packets,
															  NGTCP2_MAX_UDP_PAYLOAD_SIZE, &e, now(q));
	const struct io_datagrams d = {
		.peer = q->server, .bytes = q->thread->packets, .length = (size_t)n, .segment = (size_t)n};
	if (n > 0) (void)io_send(q->loop, q->fd, &d); /* at most it is lost */
}

/* Ends the connection with an error of ngtcp2. Sets errno. Returns -1. */
static int end_with(struct quic *q, int error) {
	char text[TLS_TEXT];
	switch (error) {
	case NGTCP2_ERR_DRAINING: return q->reset ? end(q, ECONNRESET, "stateless reset") : end_closed(q);
	case NGTCP2_ERR_HANDSHAKE_TIMEOUT: return end(q, ETIMEDOUT, "handshake timed out");
	case NGTCP2_ERR_IDLE_CLOSE: return end(q, ETIMEDOUT, "idle timeout");
	case NGTCP2_ERR_RECV_VERSION_NEGOTIATION: return end(q, EBADMSG, "the server does not speak version 1 of QUIC");
	case NGTCP2_ERR_NOMEM: return end(q, ENOMEM, "no memory");
	default: break;
	}
	say_end(q, error);
	if (error == NGTCP2_ERR_CRYPTO || q->agreed_not) {
		tls_explain(q->tls, text);
		ERR_clear_error();
		return end(q, EPROTO, "%s", text);
	}
	if (error != NGTCP2_ERR_CALLBACK_FAILURE)
		return end(q, EBADMSG, "the server broke QUIC: %s", ngtcp2_strerror(error));
	if (!q->error) return end(q, ENOMEM, "no memory");
	return end(q, EBADMSG, "the server broke HTTP/3: %s", http3_code_name(q->error));
}

/* --- what ngtcp2 asks for --- */

static ngtcp2_conn *conn_of(ngtcp2_crypto_conn_ref *ref) { return ((struct quic *)ref->user_data)->conn; }

static void make_random(uint8_t *to, size_t length, const ngtcp2_rand_ctx *unused) {
	(void)unused;
	if (RAND_bytes(to, (int)length) != 1) memset(to, 0, length); /* of no secret: padding and skipped numbers */
}

/* No other IDs are needed: the server knows the client by its socket. */
static int new_id(ngtcp2_conn *conn, ngtcp2_cid *cid, ngtcp2_stateless_reset_token *token, size_t length,
				  void *connection) {
	(void)conn, (void)cid, (void)token, (void)length, (void)connection;
	return NGTCP2_ERR_CALLBACK_FAILURE;
}

static int complete(ngtcp2_conn *conn, void *connection) {
	struct quic *q = connection;
	const ngtcp2_transport_params *server = ngtcp2_conn_get_remote_transport_params(conn);
	q->agreed_not = !tls_agreed(q->tls);
	if (q->agreed_not) return NGTCP2_ERR_CALLBACK_FAILURE;
	q->open = true;
	q->calls->allowed(q->owner, server->initial_max_streams_bidi);
	q->calls->opened(q->owner, q->tls);
	return 0;
}

static int allow(ngtcp2_conn *conn, uint64_t streams, void *connection) {
	const struct quic *q = connection;
	(void)conn;
	q->calls->allowed(q->owner, streams);
	return 0;
}

static int take_data(ngtcp2_conn *conn, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *data,
					 size_t length, void *connection, void *request) {
	struct quic *q = connection;
	const bool ends = flags & NGTCP2_STREAM_DATA_FLAG_FIN;
	(void)offset;
	q->error = q->calls->received(q->owner, stream, request, (const char *)data, length, ends);
	if (q->error) return NGTCP2_ERR_CALLBACK_FAILURE;
	ngtcp2_conn_extend_max_offset(conn, length);
	if (!ends) (void)ngtcp2_conn_extend_max_stream_offset(conn, stream, length);
	return 0;
}

static int take_reset(ngtcp2_conn *conn, int64_t stream, uint64_t final_size, uint64_t error, void *connection,
					  void *request) {
	const struct quic *q = connection;
	(void)conn, (void)final_size;
	q->calls->reset(q->owner, stream, request, error);
	return 0;
}

static int unblock(ngtcp2_conn *conn, int64_t stream, uint64_t most, void *connection, void *request) {
	const struct quic *q = connection;
	(void)conn, (void)most;
	q->calls->block(q->owner, stream, request, false);
	return 0;
}

static int note_reset(ngtcp2_conn *conn, const ngtcp2_pkt_stateless_reset2 *reset, void *connection) {
	struct quic *q = connection;
	(void)conn, (void)reset;
	q->reset = true;
	return 0;
}

static void set_callbacks(ngtcp2_callbacks *callbacks) {
	*callbacks = (ngtcp2_callbacks){.client_initial = ngtcp2_crypto_client_initial_cb,
									.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
									.encrypt = ngtcp2_crypto_encrypt_cb,
									.decrypt = ngtcp2_crypto_decrypt_cb,
									.hp_mask = ngtcp2_crypto_hp_mask_cb,
									.recv_retry = ngtcp2_crypto_recv_retry_cb,
									.update_key = ngtcp2_crypto_update_key_cb,
									.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
									.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
									.get_path_challenge_data2 = ngtcp2_crypto_get_path_challenge_data2_cb,
									.version_negotiation = ngtcp2_crypto_version_negotiation_cb,
									.rand = make_random,
									.get_new_connection_id2 = new_id,
									.handshake_completed = complete,
									.extend_max_local_streams_bidi = allow,
									.recv_stream_data = take_data,
									.stream_reset = take_reset,
									.extend_max_stream_data = unblock,
									.recv_stateless_reset2 = note_reset};
}

/* --- life --- */

struct quic_thread *quic_thread_new(const struct quic_settings *settings, const struct quic_owner *calls) {
	struct quic_thread *t = calloc(1, sizeof *t);
	if (!t) return NULL;
	t->settings = *settings;
	t->calls = calls;
	t->received = io_received_new();
	set_callbacks(&t->callbacks);
	if (t->received && ngtcp2_crypto_ossl_init() == 0) return t;
	quic_thread_free(t);
	return NULL;
}

void quic_thread_free(struct quic_thread *t) {
	if (!t) return;
	io_received_free(t->received);
	free(t);
}

static bool make_conn(struct quic *q) {
	const struct quic_settings *of = &q->thread->settings;
	ngtcp2_settings s;
	ngtcp2_transport_params p;
	ngtcp2_cid server = {.datalen = SERVER_ID_FIRST}, none = {0};
	ngtcp2_settings_default(&s);
	s.initial_ts = now(q);
	s.handshake_timeout = (ngtcp2_duration)of->timeout_ns;
	s.no_pmtud = !of->uploads;
	ngtcp2_transport_params_default(&p);
	p.initial_max_stream_data_bidi_local = of->window;
	p.initial_max_data = of->window_all;
	p.initial_max_streams_uni = QUIC_SERVER_STREAMS;
	p.initial_max_stream_data_uni = SERVER_STREAM_WINDOW;
	p.max_idle_timeout = IDLE_S * NGTCP2_SECONDS;
	return RAND_bytes(server.data, SERVER_ID_FIRST) == 1 &&
		   ngtcp2_conn_client_new(&q->conn, &server, &none, &q->path, NGTCP2_PROTO_VER_V1, &q->thread->callbacks, &s,
								  &p, NULL, q) == 0;
}

/* Makes TLS, which ngtcp2 carries. */
static bool make_tls(struct quic *q) {
	q->tls = tls_open(q->thread->settings.tls, TLS_NO_DESCRIPTOR);
	if (!q->tls || ngtcp2_crypto_ossl_configure_client_session(q->tls) != 0) return false;
	SSL_set_app_data(q->tls, &q->ref);
	if (ngtcp2_crypto_ossl_ctx_new(&q->crypto, q->tls) != 0) return false;
	ngtcp2_conn_set_tls_native_handle(q->conn, q->crypto);
	return true;
}

struct quic *quic_new(struct quic_thread *t, io_loop *loop, int fd, struct io_alarm *alarm, void *owner) {
	struct quic *q = calloc(1, sizeof *q);
	socklen_t local = sizeof q->local, server = sizeof q->server;
	if (!q) return NULL;
	*q = (struct quic){.thread = t, .calls = t->calls, .owner = owner, .loop = loop, .fd = fd, .alarm = alarm};
	q->ref = (ngtcp2_crypto_conn_ref){.get_conn = conn_of, .user_data = q};
	io_datagram_socket(fd);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){RECEIVE_BUFFER}, sizeof(int)); /* as far as it is allowed */
	if (getsockname(fd, &q->local.any, &local) == 0 && getpeername(fd, &q->server.any, &server) == 0) {
		q->path = (ngtcp2_path){.local = {.addr = &q->local.any, .addrlen = local},
								.remote = {.addr = &q->server.any, .addrlen = server}};
		if (make_conn(q) && make_tls(q)) return q;
	}
	q->ended = true;
	quic_free(q);
	return NULL;
}

void quic_free(struct quic *q) {
	if (!q->ended) say_end(q, 0);
	io_alarm_cancel(q->loop, q->alarm);
	if (q->tls) {
		SSL_set_app_data(q->tls, NULL);
		SSL_set_shutdown(q->tls, SSL_SENT_SHUTDOWN); /* else its session cannot be resumed */
	}
	ngtcp2_conn_del(q->conn);
	ngtcp2_crypto_ossl_ctx_del(q->crypto);
	tls_close(q->tls, false);
	free((char *)(uintptr_t)q->held.bytes);
	free(q);
}

/* --- receiving --- */

/* Handles datagrams. Returns 0, or -1 as quic_receive(). */
static int take(struct quic *q, const struct io_datagrams *d) {
	const ngtcp2_pkt_info info = {.ecn = d->ecn};
	for (size_t at = 0; at < d->length; at += d->segment) {
		const size_t length = d->length - at < d->segment ? d->length - at : d->segment;
		const int error =
			ngtcp2_conn_read_pkt(q->conn, &q->path, &info, (const uint8_t *)d->bytes + at, length, now(q));
		if (error) return end_with(q, error);
	}
	return 0;
}

ssize_t quic_receive(struct quic *q) {
	struct io_received *received = q->thread->received;
	const struct io_datagrams *got;
	ssize_t sum = 0;
	const int n = io_receive(q->loop, q->fd, received, &got), error = errno;
	*q->thread->settings.now_ns = machine_clock_ns();
	if (n <= 0 && io_skipped_error(received) == ECONNREFUSED)
		return q->open ? end(q, ECONNRESET, "the server has closed its port")
					   : end(q, ECONNREFUSED, "%s", ""); /* the error says it */
	errno = error;
	if (n == -1 && errno != EAGAIN) return end(q, errno, "%s", strerror(errno));
	for (int i = 0; i < n; sum += (ssize_t)got[i++].length)
		if (take(q, &got[i]) == -1) return -1;
	return n == -1 ? -1 : sum;
}

int quic_expire(struct quic *q) {
	const int error = ngtcp2_conn_handle_expiry(q->conn, now(q));
	return error ? end_with(q, error) : 0;
}

/* --- sending --- */

/* Notes what ngtcp2 has taken of a piece. Returns 0, or an error that ends the connection. */
static int note_written(const struct quic *q, const struct quic_piece *piece, ngtcp2_ssize result, ngtcp2_ssize taken) {
	switch (result) {
	case NGTCP2_ERR_STREAM_DATA_BLOCKED: q->calls->block(q->owner, piece->stream, piece->request, true); return 0;
	case NGTCP2_ERR_STREAM_SHUT_WR: /* the server wants no more of it */
	case NGTCP2_ERR_STREAM_NOT_FOUND: q->calls->sent(q->owner, piece, piece->length); return 0;
	case NGTCP2_ERR_WRITE_MORE: break;
	default:
		if (result < 0) return (int)result;
	}
	if (taken >= 0) q->calls->sent(q->owner, piece, (size_t)taken);
	return 0;
}

/* Writes a packet, for ngtcp2_conn_write_aggregate_pkt2(). */
static ngtcp2_ssize write_packet(ngtcp2_conn *conn, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *to, size_t room,
								 ngtcp2_tstamp at, void *connection) {
	const struct quic *q = connection;
	for (;;) {
		struct quic_piece piece = {.stream = -1};
		const bool any = q->open && ngtcp2_conn_get_max_data_left(conn) && q->calls->next(q->owner, &piece);
		const ngtcp2_vec vector = {.base = (uint8_t *)(uintptr_t)piece.at, .len = piece.length};
		const uint32_t flags =
			any ? NGTCP2_WRITE_STREAM_FLAG_MORE | (piece.ends ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0) : 0;
		ngtcp2_ssize taken = -1, n = ngtcp2_conn_writev_stream(conn, path, info, to, room, &taken, flags, piece.stream,
															   &vector, any, at);
		const int error = any ? note_written(q, &piece, n, taken) : n < 0 ? (int)n : 0;
		if (error) return error;
		if (n >= 0) return n;
	}
}

/* Keeps what the socket does not take now: EAGAIN. Without memory it is lost, and sent again. Returns -1. */
static int hold(struct quic *q, const struct io_datagrams *d, size_t sent) {
	char *copy = malloc(d->length - sent);
	if (copy) {
		memcpy(copy, d->bytes + sent, d->length - sent);
		q->held = *d;
		q->held.bytes = copy;
		q->held.length -= sent;
	}
	errno = EAGAIN;
	return -1;
}

/* Sends datagrams; with an error other than EAGAIN they are lost, and sent again. Returns 0, or -1 if some are held. */
static int send_out(struct quic *q, const struct io_datagrams *d) {
	const ssize_t n = io_send(q->loop, q->fd, d);
	if (n == -1) return errno == EAGAIN ? hold(q, d, 0) : 0;
	return (size_t)n < d->length ? hold(q, d, (size_t)n) : 0;
}

static int send_held(struct quic *q) {
	const struct io_datagrams d = q->held;
	if (!d.bytes) return 0;
	q->held.bytes = NULL;
	const int result = send_out(q, &d);
	free((char *)(uintptr_t)d.bytes);
	return result;
}

static int set_alarm(struct quic *q) {
	const ngtcp2_tstamp at = ngtcp2_conn_get_expiry(q->conn);
	if (at == UINT64_MAX) io_alarm_cancel(q->loop, q->alarm);
	else if (io_alarm_set(q->loop, q->alarm, (int64_t)at) == -1) return end(q, ENOMEM, "no memory");
	return 0;
}

int quic_send(struct quic *q) {
	char *packets = q->thread->packets;
	ngtcp2_pkt_info info = {0};
	size_t segment;
	int result = send_held(q);
	while (result == 0) {
		const ngtcp2_ssize n =
			ngtcp2_conn_write_aggregate_pkt2(q->conn, NULL, &info, (uint8_t *)packets, sizeof q->thread->packets,
											 &segment, write_packet, IO_DATAGRAM_SEGMENTS, now(q));
		if (n < 0) return end_with(q, (int)n);
		if (n == 0) break;
		const struct io_datagrams d = {
			.peer = q->server, .ecn = (uint8_t)info.ecn, .bytes = packets, .length = (size_t)n, .segment = segment};
		result = send_out(q, &d);
	}
	ngtcp2_conn_update_pkt_tx_time(q->conn, now(q));
	if (set_alarm(q) == -1) return -1;
	if (result == -1) errno = EAGAIN;
	return result;
}

/* --- streams --- */

int64_t quic_open(struct quic *q, void *request) {
	int64_t stream;
	return ngtcp2_conn_open_bidi_stream(q->conn, &stream, request) == 0 ? stream : -1;
}

int64_t quic_open_one_way(struct quic *q) {
	int64_t stream;
	return ngtcp2_conn_open_uni_stream(q->conn, &stream, NULL) == 0 ? stream : -1;
}

void quic_cancel(struct quic *q, int64_t stream, uint64_t error) {
	(void)ngtcp2_conn_shutdown_stream(q->conn, 0, stream, error);
}

void quic_stop_sending(struct quic *q, int64_t stream, uint64_t error) {
	(void)ngtcp2_conn_shutdown_stream_write(q->conn, 0, stream, error);
}
