/* endpoint.c - see endpoint.h: the sockets of a worker, and the connection of each datagram. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/filter.h>
#endif

#include "gatling/hpack/qpack.h"
#include "gatling/quic/endpoint.h"

enum {
	LONG_TYPE = 0x30, /* bits of the type; of an Initial packet: */
	INITIAL_V1 = 0,   /* RFC 9000, section 17.2 */
	INITIAL_V2 = 0x10 /* RFC 9369, section 3.2 */
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

/* Prepares the sockets of this worker, and the channels. Returns false if they cannot be watched, or without memory. */
static bool open_cookies(struct quic *e) {
	const struct sockets *udp = &e->shared->udp;
	e->cookie = calloc(udp->count + e->shared->before + 1, sizeof *e->cookie);
	if (!e->cookie) return false;
	for (unsigned i = 0; i < udp->count; i++) {
		if (!datagram_socket_is_used(&udp->at[i], e->worker, e->workers)) continue;
		struct quic_cookie *s = &e->cookie[e->sockets++];
		*s = (struct quic_cookie){.kind = COOKIE_QUIC,
								  .is = QUIC_SOCKET,
								  .fd = udp->at[i].fd,
								  .quic = e,
								  .port = socket_port_number(&udp->at[i].address),
								  .receives = datagram_socket_receives(&udp->at[i], e->worker, e->workers)};
		if (io_fd(e->context->loop, s->fd, s) == -1) return false;
	}
	const int channels = quic_channels_open(e, &e->cookie[e->sockets]);
	e->channels = channels == -1 ? 0 : (unsigned)channels;
	return channels != -1;
}

struct quic *quic_new(struct conn_context *w, const struct datagram_sockets *shared, unsigned worker,
					  unsigned workers) {
	struct quic *e = shared->udp.count ? calloc(1, sizeof *e) : NULL;
	if (!e) return NULL;
	e->context = w;
	w->kinds[CONN_QUIC] = &quic_kind;
	e->shared = shared;
	e->worker = worker;
	e->workers = workers;
	e->http3 = (struct http3_context){.exchanges = &w->exchanges, .loop = w->loop, .memory_max = w->http2.memory_max};
	e->http3.decoder = field_decoder_new();
	e->received = io_received_new();
	quic_set_callbacks(&e->callbacks);
	e->bbr = prefers_bbr();
	if (e->http3.decoder && e->received && quic_table_open(&e->table) && quic_id_open(e) &&
		ngtcp2_crypto_ossl_init() == 0 && open_cookies(e))
		return e;
	quic_free(e);
	return NULL;
}

/* The descriptors stay open that are not of this worker alone. */
void quic_free(struct quic *e) {
	if (!e) return;
	for (int i = 0; i < e->places; i++) {
		struct quic_connection *c = e->place[i];
		if (c && c->open) quic_close(c, HTTP3_NO_ERROR); /* so that the client does not wait for nothing */
		if (c) quic_free_connection(c);
	}
	e->context->kinds[CONN_QUIC] = NULL;
	io_alarm_cancel(e->context->loop, &e->alarm);
	for (unsigned i = 0; i < e->sockets; i++) quic_drop_held(&e->cookie[i]);
	quic_queue_clear(&e->aside);
	quic_queue_clear(&e->beginning);
	if (e->channels) io_close(e->context->loop, e->cookie[e->sockets].fd);
	quic_table_close(&e->table);
	field_decoder_free(e->http3.decoder);
	io_received_free(e->received);
	EVP_CIPHER_CTX_free(e->mask);
	free(e->message);
	free(e->place);
	free(e->cookie);
	free(e);
}

/* --- sockets --- */

/* Has the kernel choose by the first byte of an ID, modulo count (BPF, as of socket(7)). It begins after the first
 * byte, or in a long header after the sixth. */
int quic_route(int fd, unsigned count) {
#ifdef SO_ATTACH_REUSEPORT_CBPF
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, QUIC_LONG_HEADER, 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6), BPF_STMT(BPF_JMP | BPF_JA, 1),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 1), BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
#else
	(void)fd, (void)count;
	return -1;
#endif
}

static int set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value); }

int quic_set_up_socket(int fd) {
	(void)set(fd, SOL_SOCKET, SO_RCVBUF, QUIC_RECEIVE_BUFFER); /* as far as it is allowed */
	io_datagram_socket(fd);
	return fcntl(fd, F_SETFL, O_NONBLOCK);
}

int quic_open_socket(const struct sockaddr *address, socklen_t length, bool dual_stack) {
	const int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1) return -1;
	if (address->sa_family == AF_INET6) (void)set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !dual_stack);
	if (quic_set_up_socket(fd) == 0 && set(fd, SOL_SOCKET, SO_REUSEPORT, 1) == 0 && bind(fd, address, length) == 0)
		return fd;
	const int error = errno;
	close(fd);
	errno = error;
	return -1;
}

unsigned quic_port(const struct quic *e) { return e->reachable ? e->cookie[e->sockets - 1].port : 0; }

static void watch_sockets(struct quic *e, bool watch) {
	for (unsigned i = 0; i < e->sockets; i++) {
		const struct quic_cookie *s = &e->cookie[i];
		if (watch && s->receives) (void)io_wantread(e->context->loop, s->fd);
		else if (s->receives) io_dontwantread(e->context->loop, s->fd);
	}
	quic_channels_watch(e, watch);
}

void quic_serve(struct quic *e) {
	e->begun_ns = io_now_ns(e->context->loop);
	e->probed_ms = io_now(e->context->loop) - QUIC_PROBE_AGAIN_MS;
	watch_sockets(e, true);
}

void quic_hand_over(struct quic *e) {
	e->handed_over = true;
	watch_sockets(e, false);
}

void quic_use_certificates(struct quic *e, const struct certificates *certificates, bool strict_sni) {
	e->handshaking = (struct tls_handshaking){
		.certificates = certificates, .strict_sni = strict_sni, .quic = true, .local = quic_local_address};
}

void quic_use_fields(struct quic *e, struct slice lines) {
	e->http3.common_block = (struct slice){.at = e->common, .length = qpack_fields(lines, e->common)};
}

/* --- datagrams --- */

struct quic_connection *quic_connection_for(const struct quic *e, const struct quic_datagram *d) {
	ngtcp2_version_cid id;
	if (ngtcp2_pkt_decode_version_cid(&id, d->bytes, d->length, QUIC_ID_LENGTH) != 0) return NULL;
	return quic_table_find(&e->table, id.dcid, id.dcidlen);
}

void quic_take_datagram(struct quic *e, const struct quic_datagram *d) {
	ngtcp2_version_cid id;
	const int result = ngtcp2_pkt_decode_version_cid(&id, d->bytes, d->length, QUIC_ID_LENGTH);
	if (result == NGTCP2_ERR_VERSION_NEGOTIATION && d->length >= QUIC_INITIAL_MIN && !quic_probe_arrived(e, d, &id))
		quic_negotiate_version(e, d, &id);
	if (result != 0) return;
	const int initial_type = id.version == NGTCP2_PROTO_VER_V2 ? INITIAL_V2 : INITIAL_V1;
	const bool is_long = d->bytes[0] & QUIC_LONG_HEADER, initial = is_long && (d->bytes[0] & LONG_TYPE) == initial_type;
	struct quic_connection *c = quic_table_find(&e->table, id.dcid, id.dcidlen);
	if (!c && quic_pass_on(e, d, &id, initial)) return;
	if (c || initial) quic_take_in_turn(e, c, d);
	else if (!is_long) quic_reset(e, d, &id);
}

static void take_datagrams(struct quic_cookie *socket, const struct io_datagrams *got) {
	ngtcp2_path_storage path;
	if (got->local.any.sa_family == AF_UNSPEC) return; /* every system here tells where a datagram was sent to */
	quic_set_path(&path, &got->local, &got->peer);
	for (size_t at = 0; at < got->length; at += got->segment) {
		const size_t left = got->length - at;
		const struct quic_datagram d = {.socket = socket,
										.path = path.path,
										.bytes = (const uint8_t *)got->bytes + at,
										.length = left < got->segment ? left : got->segment,
										.ecn = got->ecn};
		quic_take_datagram(socket->quic, &d);
	}
}

void quic_readable(struct quic_cookie *cookie) {
	struct quic *e = cookie->quic;
	const struct io_datagrams *got;
	if (cookie->is == QUIC_CHANNEL) {
		quic_channel_readable(cookie);
		return;
	}
	int n = IO_DATAGRAM_BATCH;
	for (int i = 0; i < QUIC_BATCHES && n == IO_DATAGRAM_BATCH && (!i || e->reads_on); i++) {
		e->reads_on = false;
		n = io_receive(e->context->loop, cookie->fd, e->received, &got);
		for (int k = 0; k < n; k++) take_datagrams(cookie, &got[k]);
	}
}

/* A socket takes datagrams again, or a read of a file is done. */
void quic_writable(struct quic_cookie *cookie) {
	struct quic_connection *c = (struct quic_connection *)((char *)cookie - offsetof(struct quic_connection, reader));
	if (cookie->is != QUIC_READER) {
		quic_send_held(cookie);
		return;
	}
	io_dontwantwrite(cookie->quic->context->loop, cookie->fd);
	if (c->http3) streams_go_on(http3_streams(c->http3));
	quic_wants_write(c);
}

/* Returns whether there is something to do that needs no event. */
static bool has_work(const struct quic *e) {
	const struct quic_connection *c = e->first_unsent;
	while (c && c->socket->held.bytes) c = c->next_unsent; /* it goes on when the socket does */
	return c || e->aside.first || e->beginning.first;
}

void quic_turn(struct quic *e) {
	struct io_alarm *alarm;
	struct quic_connection *c;
	quic_probe(e);
	quic_take_aside(e);
	while ((alarm = io_alarm_due(e->context->loop))) {
		if (alarm == &e->alarm) continue;
		c = quic_connection_of(alarm);
		const int error = ngtcp2_conn_handle_expiry(c->conn, quic_now(e));
		if (error) quic_end(c, error);
		quic_wants_write(c);
	}
	quic_check(e);
	quic_begin_waiting(e);
	quic_write_all(e);
	if (has_work(e)) (void)io_alarm_set(e->context->loop, &e->alarm, io_now_ns(e->context->loop));
	else if (e->connections && !e->alarm.deadline_ns) quic_check_later(e);
}

void quic_drain(struct quic *e, bool closes) {
	e->draining |= closes;
	for (int i = 0; i < e->places; i++)
		if (e->place[i]) quic_drain_connection(e->place[i]);
}
