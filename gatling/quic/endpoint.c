/* endpoint.c - see endpoint.h: the sockets of a worker, and the connection of each datagram. */
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/filter.h>
#endif

#include "gatling/http/qpack.h"
#include "gatling/quic/endpoint.h"

enum {
	RESET_RANDOM = 22,            /* random bytes of a stateless reset, */
	RESET_OF = RESET_RANDOM + 21, /* and the shortest packet that is answered with one (RFC 9000, section 10.3) */
	PACKET_MAX = NGTCP2_MAX_UDP_PAYLOAD_SIZE, /* of those that are not of a connection */
	INITIAL_MIN = 1200,                       /* bytes of a datagram with an Initial packet (section 14.1) */
	LONG_HEADER = 0x80
};

/* Returns whether the congestion control of the system's new TCP sockets is BBR. */
static bool prefers_bbr(void) {
	char name[16] = "";
#ifdef TCP_CONGESTION
	socklen_t length = sizeof name - 1;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd == -1 || getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == -1) *name = '\0';
	if (fd != -1) close(fd);
#endif
	return strncmp(name, "bbr", strlen("bbr")) == 0;
}

struct quic *quic_new(struct conn_context *w, unsigned worker, unsigned workers) {
	struct quic *e = calloc(1, sizeof *e);
	if (!e) return NULL;
	e->context = w;
	e->worker = worker;
	e->workers = workers;
	e->http3 = (struct http3_context){.exchanges = &w->exchanges, .loop = w->loop, .memory_max = w->http2.memory_max};
	e->http3.decoder = field_decoder_new();
	e->received = io_received_new();
	quic_set_callbacks(&e->callbacks);
	e->bbr = prefers_bbr();
	if (e->http3.decoder && e->received && quic_table_open(&e->table) && ngtcp2_crypto_ossl_init() == 0) return e;
	quic_free(e);
	return NULL;
}

void quic_free(struct quic *e) {
	if (!e) return;
	while (e->first) {
		if (e->first->open) quic_close(e->first, HTTP3_NO_ERROR); /* so that the client does not wait for nothing */
		quic_free_connection(e->first);
	}
	io_alarm_cancel(e->context->loop, &e->alarm);
	for (unsigned i = 0; i < e->sockets; i++) {
		quic_drop_held(&e->socket[i]);
		io_close(e->context->loop, e->socket[i].fd);
	}
	quic_table_close(&e->table);
	field_decoder_free(e->http3.decoder);
	io_received_free(e->received);
	free(e);
}

/* --- sockets --- */

/* Has the kernel give each worker the datagrams with its IDs, and those of new connections by the IDs that clients have
 * chosen (BPF, as of socket(7)). The ID begins after the first byte, or in a long header after the sixth. */
static int route(int fd, unsigned workers) {
#ifdef SO_ATTACH_REUSEPORT_CBPF
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, LONG_HEADER, 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6), BPF_STMT(BPF_JMP | BPF_JA, 1),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 1), BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, workers),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
#else
	(void)fd, (void)workers;
	return 0;
#endif
}

static int set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value); }

int quic_open_socket(const struct sockaddr *address, socklen_t length, bool dual_stack, unsigned workers) {
	const int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1) return -1;
	(void)set(fd, SOL_SOCKET, SO_RCVBUF, QUIC_RECEIVE_BUFFER); /* as far as it is allowed */
	if (address->sa_family == AF_INET6) (void)set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !dual_stack);
	io_datagram_socket(fd);
	if (set(fd, SOL_SOCKET, SO_REUSEPORT, 1) == 0 && bind(fd, address, length) == 0 &&
		(workers == 1 || route(fd, workers) == 0))
		return fd;
	const int error = errno;
	close(fd);
	errno = error;
	return -1;
}

bool quic_listen(struct quic *e, int fd, unsigned port) {
	if (e->sockets == QUIC_SOCKETS) return false;
	struct quic_cookie *s = &e->socket[e->sockets];
	*s = (struct quic_cookie){.kind = COOKIE_QUIC, .fd = fd, .port = port, .quic = e};
	if (io_fd(e->context->loop, fd, s) == -1) return false;
	e->sockets++;
	return io_wantread(e->context->loop, fd) == 0;
}

void quic_use_certificates(struct quic *e, const struct certificates *certificates, bool strict_sni) {
	e->handshaking = (struct tls_handshaking){.certificates = certificates, .strict_sni = strict_sni, .quic = true};
}

/* --- datagrams that belong to no connection --- */

/* Counts an answer to somebody who has no connection. Returns whether it may be sent. */
static bool may_answer_stray(struct quic *e) {
	const int64_t second = io_now(e->context->loop) / 1000;
	if (second != e->second) e->strays = 0;
	e->second = second;
	return e->strays++ < QUIC_STRAYS;
}

static void negotiate_version(struct quic_cookie *socket, const ngtcp2_path *path, const ngtcp2_version_cid *v) {
	static const uint32_t versions[] = {NGTCP2_PROTO_VER_V1};
	uint8_t packet[PACKET_MAX], random;
	if (!may_answer_stray(socket->quic) || RAND_bytes(&random, 1) != 1) return;
	const ngtcp2_ssize n = ngtcp2_pkt_write_version_negotiation(packet, sizeof packet, random, v->scid, v->scidlen,
																v->dcid, v->dcidlen, versions, 1);
	if (n > 0) quic_send(socket, path, packet, (size_t)n);
}

/* Tells the client of a connection that is lost here (RFC 9000, section 10.3). */
static void reset(struct quic_cookie *socket, const ngtcp2_path *path, const ngtcp2_version_cid *v, size_t length) {
	uint8_t packet[PACKET_MAX], random[RESET_RANDOM];
	ngtcp2_stateless_reset_token token;
	ngtcp2_cid cid;
	ngtcp2_cid_init(&cid, v->dcid, v->dcidlen);
	if (length < RESET_OF || !may_answer_stray(socket->quic) || !quic_secret() ||
		RAND_bytes(random, sizeof random) != 1 ||
		ngtcp2_crypto_generate_stateless_reset_token(token.data, quic_secret(), QUIC_SECRET, &cid) != 0)
		return;
	const ngtcp2_ssize n = ngtcp2_pkt_write_stateless_reset2(packet, sizeof packet, &token, random, sizeof random);
	if (n > 0) quic_send(socket, path, packet, (size_t)n);
}

/* Has the client show that it receives at its address (section 8.1.2). */
static void retry(struct quic_cookie *socket, const ngtcp2_path *path, const ngtcp2_pkt_hd *head) {
	struct quic *e = socket->quic;
	uint8_t packet[PACKET_MAX], token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN2];
	ngtcp2_cid scid;
	if (!quic_secret() || !quic_id_make(e, &scid)) return;
	const ngtcp2_ssize length =
		ngtcp2_crypto_generate_retry_token2(token, quic_secret(), QUIC_SECRET, head->version, path->remote.addr,
											path->remote.addrlen, &scid, &head->dcid, quic_now(e));
	if (length < 0) return;
	const ngtcp2_ssize n = ngtcp2_crypto_write_retry(packet, sizeof packet, head->version, &head->scid, &scid,
													 &head->dcid, token, (size_t)length);
	if (n > 0) quic_send(socket, path, packet, (size_t)n);
}

static bool is_validated(const struct quic *e, const ngtcp2_path *path, const ngtcp2_pkt_hd *head,
						 ngtcp2_cid *original) {
	return head->tokenlen && quic_secret() &&
		   ngtcp2_crypto_verify_retry_token2(original, head->token, head->tokenlen, quic_secret(), QUIC_SECRET,
											 head->version, path->remote.addr, path->remote.addrlen, &head->dcid,
											 QUIC_RETRY_S * NGTCP2_SECONDS, quic_now(e)) == 0;
}

/* Returns the connection that an Initial packet begins, or NULL. */
static struct quic_connection *begin(struct quic_cookie *socket, const ngtcp2_path *path, const uint8_t *packet,
									 size_t length) {
	struct quic *e = socket->quic;
	ngtcp2_pkt_hd head;
	ngtcp2_cid original;
	if (length < INITIAL_MIN || ngtcp2_accept(&head, packet, length) != 0) return NULL;
	if (e->draining || e->half_open >= QUIC_HALF_OPEN_MAX) return NULL;
	const bool validated = is_validated(e, path, &head, &original);
	if (!validated && e->half_open >= QUIC_HALF_OPEN) {
		retry(socket, path, &head);
		return NULL;
	}
	return quic_accept(e, socket, &head, path, validated ? &original : NULL);
}

/* --- datagrams --- */

static void take_packet(struct quic_cookie *socket, const ngtcp2_path *path, const uint8_t *packet, size_t length,
						uint8_t ecn) {
	struct quic *e = socket->quic;
	ngtcp2_version_cid v;
	const int result = ngtcp2_pkt_decode_version_cid(&v, packet, length, QUIC_ID_LENGTH);
	if (result == NGTCP2_ERR_VERSION_NEGOTIATION && length >= INITIAL_MIN) negotiate_version(socket, path, &v);
	if (result != 0) return;
	struct quic_connection *c = quic_table_find(&e->table, v.dcid, v.dcidlen);
	if (!c && packet[0] & LONG_HEADER) c = begin(socket, path, packet, length);
	else if (!c) reset(socket, path, &v, length);
	if (c) quic_take(c, path, packet, length, ecn);
}

static void take_datagrams(struct quic_cookie *socket, const struct io_datagrams *d) {
	ngtcp2_path_storage path;
	ngtcp2_path_storage_init(&path, &d->local.any, io_address_length(&d->local), &d->peer.any,
							 io_address_length(&d->peer), NULL);
	if (d->local.any.sa_family == AF_UNSPEC) return; /* every system here tells where a datagram was sent to */
	for (size_t at = 0; at < d->length; at += d->segment) {
		const size_t left = d->length - at;
		take_packet(socket, &path.path, (const uint8_t *)d->bytes + at, left < d->segment ? left : d->segment, d->ecn);
	}
}

void quic_readable(struct quic_cookie *socket) {
	struct quic *e = socket->quic;
	const struct io_datagrams *got;
	const int n = io_receive(e->context->loop, socket->fd, e->received, &got);
	for (int i = 0; i < n; i++) take_datagrams(socket, &got[i]);
}

/* A socket takes datagrams again, or a read of a file is done. */
void quic_writable(struct quic_cookie *cookie) {
	struct quic_connection *c = (struct quic_connection *)((char *)cookie - offsetof(struct quic_connection, reader));
	if (!cookie->reads) {
		quic_send_held(cookie);
		return;
	}
	io_dontwantwrite(cookie->quic->context->loop, cookie->fd);
	if (c->http3) streams_go_on(http3_streams(c->http3));
	quic_wants_write(c);
}

/* Encodes the fields that all responses have, once a second. */
static void update_common_block(struct quic *e) {
	const time_t second = e->context->batches.second;
	if (second == e->common_second) return;
	e->common_second = second;
	e->http3.common_block =
		(struct slice){.at = e->common, .length = qpack_fields(e->context->common_fields[1], e->common)};
}

/* Has each connection send, as long as all together have not sent more than their share of the turn; the others come
 * first in the next one. Frees those that have ended. */
static void write_all(struct quic *e) {
	struct conn_context *w = e->context;
	const struct quic_connection *last = e->last_unsent;
	const uint64_t until = w->sent + w->share;
	struct quic_connection *c;
	for (bool all = false; !all && w->sent < until && (c = quic_next_unsent(e));) {
		all = c == last;
		const bool waits = c->socket->held.bytes && !c->ended, done = waits || c->ended || quic_write(c);
		c->pending = false; /* what it has wanted meanwhile is written */
		if (waits || !done) quic_wants_write(c);
		else if (c->ended) quic_free_connection(c);
		else if (c->open) quic_handshake_end(c);
	}
	c = e->first_unsent;
	if (c && !c->socket->held.bytes) (void)io_alarm_set(w->loop, &e->alarm, io_now_ns(w->loop));
}

void quic_turn(struct quic *e) {
	struct io_alarm *alarm;
	struct quic_connection *c;
	update_common_block(e);
	while ((alarm = io_alarm_due(e->context->loop))) {
		if (alarm == &e->alarm) continue;
		c = quic_connection_of(alarm);
		const int error = ngtcp2_conn_handle_expiry(c->conn, quic_now(e));
		if (error) quic_end(c, error);
		quic_wants_write(c);
	}
	quic_check(e);
	write_all(e);
}

void quic_drain(struct quic *e, bool closes) {
	e->draining |= closes;
	for (struct quic_connection *c = e->first; c; c = c->next) quic_drain_connection(c);
}
