/* write.c - see endpoint.h: makes and sends the packets of a connection. */
#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>

#include "gatling/quic/endpoint.h"

void quic_wants_write(struct quic_connection *c) {
	struct quic *e = c->quic;
	if (c->pending) return;
	c->pending = true;
	c->next_unsent = NULL;
	if (e->last_unsent) e->last_unsent->next_unsent = c;
	else e->first_unsent = c;
	e->last_unsent = c;
}

struct quic_connection *quic_next_unsent(struct quic *e) {
	struct quic_connection *c = e->first_unsent;
	if (!c) return NULL;
	e->first_unsent = c->next_unsent;
	if (!e->first_unsent) e->last_unsent = NULL;
	return c;
}

/* --- packets --- */

static struct io_datagrams datagrams_of(const ngtcp2_path *path, const void *packets, size_t length, size_t segment,
										uint8_t ecn) {
	struct io_datagrams d = {.ecn = ecn, .bytes = packets, .length = length, .segment = segment};
	memcpy(&d.peer, path->remote.addr, path->remote.addrlen);
	memcpy(&d.local, path->local.addr, path->local.addrlen);
	return d;
}

/* What is not sent is lost, and its receiver asks again. */
void quic_send(const struct quic_cookie *socket, const ngtcp2_path *path, const void *packet, size_t length) {
	const struct io_datagrams d = datagrams_of(path, packet, length, length, 0);
	(void)io_send(socket->quic->context->loop, socket->fd, &d);
}

/* Keeps datagrams that the socket does not take now: the connections wait until it does. Without memory they are lost,
 * and sent again. */
static void hold(struct quic_cookie *socket, const struct io_datagrams *d, size_t sent) {
	char *copy = malloc(d->length - sent);
	if (!copy) return;
	memcpy(copy, d->bytes + sent, d->length - sent);
	socket->held = *d;
	socket->held.bytes = copy;
	socket->held.length -= sent;
	if (io_wantwrite(socket->quic->context->loop, socket->fd) == -1) quic_drop_held(socket);
}

void quic_drop_held(struct quic_cookie *socket) {
	if (!socket->held.bytes) return;
	free((char *)(uintptr_t)socket->held.bytes);
	socket->held.bytes = NULL;
}

/* Returns whether an error of a socket says that it will take more later. */
static bool is_full(ssize_t sent) { return sent == -1 && errno == EAGAIN; }

void quic_send_held(struct quic_cookie *socket) {
	struct io_datagrams *d = &socket->held;
	io_loop *loop = socket->quic->context->loop;
	const ssize_t n = d->bytes ? io_send(loop, socket->fd, d) : 0;
	if (is_full(n)) return;
	if (n > 0 && (size_t)n < d->length) {
		memmove((char *)(uintptr_t)d->bytes, d->bytes + n, d->length - (size_t)n);
		d->length -= (size_t)n;
		return;
	}
	quic_drop_held(socket);
	io_dontwantwrite(loop, socket->fd);
}

static void send_packets(struct quic_cookie *socket, const struct io_datagrams *d) {
	const ssize_t n = io_send(socket->quic->context->loop, socket->fd, d);
	if (is_full(n) || (n > 0 && (size_t)n < d->length)) hold(socket, d, n > 0 ? (size_t)n : 0);
}

/* Notes what ngtcp2 has taken of a piece. Returns 0, or an error that ends the connection. */
static int note_written(struct quic_connection *c, const struct http3_piece *piece, ngtcp2_ssize result,
						ngtcp2_ssize taken) {
	switch (result) {
	case NGTCP2_ERR_STREAM_DATA_BLOCKED: http3_block(piece->stream, true); return 0;
	case NGTCP2_ERR_STREAM_SHUT_WR:
	case NGTCP2_ERR_STREAM_NOT_FOUND: http3_give_up(c->http3, piece->stream); return 0;
	case NGTCP2_ERR_WRITE_MORE: break;
	default:
		if (result < 0) return (int)result;
	}
	if (taken >= 0) http3_sent(c->http3, piece, (size_t)taken);
	return 0;
}

/* What a packet has beside its frames: a short header, whose connection ID is the longest, and the tag of the AEAD (RFC
 * 9000, section 17.3.1; RFC 9001, section 5.3); an ACK frame, as a rule. */
enum { PACKET_OVERHEAD = 1 + NGTCP2_MAX_CIDLEN + 4 + 16 + 8 };
/* What a STREAM frame has beside its data, as a rule (RFC 9000, section 19.8). */
enum { FRAME_OVERHEAD = 1 + 4 + 4 + 2 };
/* ngtcp2 does not put less of longer data into what is left of a packet. */
enum { LEAST_PART = 256 };

/* Returns how much of a piece to give to ngtcp2, if that many octets are left in a packet. */
static size_t part(size_t length, size_t left) {
	const bool splits = left > 2 * FRAME_OVERHEAD && left < LEAST_PART + FRAME_OVERHEAD;
	return splits && length > left - FRAME_OVERHEAD ? left - FRAME_OVERHEAD : length;
}

/* Writes a packet, for ngtcp2_conn_write_aggregate_pkt2(). If there is more to send, it is filled, since only packets
 * of the same size are sent together. */
static ngtcp2_ssize write_packet(ngtcp2_conn *conn, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *to, size_t room,
								 ngtcp2_tstamp now, void *connection) {
	struct quic_connection *c = connection;
	size_t left = ngtcp2_conn_get_path_max_tx_udp_payload_size(conn) - PACKET_OVERHEAD;
	for (;;) {
		struct http3_piece piece = {.id = -1};
		const bool any = c->http3 && ngtcp2_conn_get_max_data_left(conn) && http3_next(c->http3, &piece);
		const ngtcp2_vec vector = {.base = (uint8_t *)(uintptr_t)piece.at, .len = part(piece.length, left)};
		const bool ends = piece.ends && vector.len == piece.length;
		const uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (any ? NGTCP2_WRITE_STREAM_FLAG_PADDING : 0) |
							   (ends ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
		ngtcp2_ssize taken = -1, n = ngtcp2_conn_writev_stream(conn, path, info, to, room, &taken, flags, piece.id,
															   &vector, any, now);
		const int error = any ? note_written(c, &piece, n, taken) : n < 0 ? (int)n : 0;
		if (error) {
			ngtcp2_ccerr_set_liberr(&c->error, error, NULL, 0);
			return NGTCP2_ERR_CALLBACK_FAILURE;
		}
		if (n >= 0) return n;
		if (taken >= 0) left -= MIN(left, (size_t)taken + FRAME_OVERHEAD);
	}
}

static void set_alarm(struct quic_connection *c) {
	const ngtcp2_tstamp at = ngtcp2_conn_get_expiry(c->conn);
	io_loop *loop = c->quic->context->loop;
	if (at == UINT64_MAX) io_alarm_cancel(loop, &c->alarm);
	else if (io_alarm_set(loop, &c->alarm, (int64_t)at) == -1) quic_end(c, NGTCP2_ERR_NOMEM);
}

bool quic_write(struct quic_connection *c) {
	struct quic *e = c->quic;
	ngtcp2_path_storage path;
	ngtcp2_pkt_info info = {0};
	size_t segment, sent = 0;
	ngtcp2_path_storage_zero(&path);
	if (c->http3 && !c->ended) http3_make_room(c->http3);
	while (!c->ended && sent < QUIC_DATAGRAMS && !c->socket->held.bytes) {
		ngtcp2_ssize n =
			ngtcp2_conn_write_aggregate_pkt2(c->conn, &path.path, &info, (uint8_t *)e->packets, sizeof e->packets,
											 &segment, write_packet, IO_DATAGRAM_SEGMENTS, quic_now(e));
		if (n < 0) quic_end(c, (int)n);
		if (n <= 0) break;
		const struct io_datagrams d = datagrams_of(&path.path, e->packets, (size_t)n, segment, info.ecn);
		send_packets(c->socket, &d);
		e->context->sent += (uint64_t)n;
		sent += ((size_t)n + segment - 1) / segment;
	}
	ngtcp2_conn_update_pkt_tx_time(c->conn, quic_now(e));
	if (c->http3 && http3_streams(c->http3)->postpones && io_wantwrite(e->context->loop, c->reader.fd) == -1)
		quic_end(c, NGTCP2_ERR_INTERNAL);
	if (c->http3 && http3_streams(c->http3)->failed) quic_close(c, HTTP3_INTERNAL_ERROR);
	quic_end_drained(c);
	quic_update_memory(c);
	if (!c->ended) set_alarm(c);
	return c->ended || sent < QUIC_DATAGRAMS;
}
