/* write.c - see endpoint.h: makes and sends the packets of a connection. */
#include <errno.h>

#include "gatling/quic/endpoint.h"

void quic_wants_write(struct quic_connection *c) {
	if (c->pending) return;
	c->pending = true;
	c->next_unsent = c->quic->unsent;
	c->quic->unsent = c;
}

/* --- packets --- */

static void send_packets(const struct quic_cookie *socket, const ngtcp2_path *path, const void *packets, size_t length,
						 size_t segment, uint8_t ecn) {
	struct io_datagrams d = {.ecn = ecn, .bytes = packets, .length = length, .segment = segment};
	memcpy(&d.peer, path->remote.addr, path->remote.addrlen);
	memcpy(&d.local, path->local.addr, path->local.addrlen);
	(void)io_send(socket->quic->context->loop, socket->fd, &d); /* what is not sent is lost, and sent again */
}

void quic_send(const struct quic_cookie *socket, const ngtcp2_path *path, const void *packet, size_t length) {
	send_packets(socket, path, packet, length, length, 0);
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

/* Writes a packet, for ngtcp2_conn_write_aggregate_pkt2(). */
static ngtcp2_ssize write_packet(ngtcp2_conn *conn, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *to, size_t room,
								 ngtcp2_tstamp now, void *connection) {
	struct quic_connection *c = connection;
	for (;;) {
		struct http3_piece piece = {.id = -1};
		const bool any = c->http3 && ngtcp2_conn_get_max_data_left(conn) && http3_next(c->http3, &piece);
		const ngtcp2_vec vector = {.base = (uint8_t *)(uintptr_t)piece.at, .len = piece.length};
		const uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (piece.ends ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
		ngtcp2_ssize taken = -1, n = ngtcp2_conn_writev_stream(conn, path, info, to, room, &taken, flags, piece.id,
															   &vector, any, now);
		const int error = any ? note_written(c, &piece, n, taken) : n < 0 ? (int)n : 0;
		if (error) {
			ngtcp2_ccerr_set_liberr(&c->error, error, NULL, 0);
			return NGTCP2_ERR_CALLBACK_FAILURE;
		}
		if (n >= 0) return n;
	}
}

/* more: it has sent what it may in this turn, and goes on in the next. */
static void set_alarm(struct quic_connection *c, bool more) {
	const ngtcp2_tstamp at = more ? quic_now(c->quic) : ngtcp2_conn_get_expiry(c->conn);
	io_loop *loop = c->quic->context->loop;
	if (at == UINT64_MAX) io_alarm_cancel(loop, &c->alarm);
	else if (io_alarm_set(loop, &c->alarm, (int64_t)at) == -1) quic_end(c, NGTCP2_ERR_NOMEM);
}

void quic_write(struct quic_connection *c) {
	struct quic *e = c->quic;
	ngtcp2_path_storage path;
	ngtcp2_pkt_info info = {0};
	size_t segment, sent = 0;
	ngtcp2_path_storage_zero(&path);
	while (!c->ended && sent < QUIC_DATAGRAMS) {
		ngtcp2_ssize n =
			ngtcp2_conn_write_aggregate_pkt2(c->conn, &path.path, &info, (uint8_t *)e->packets, sizeof e->packets,
											 &segment, write_packet, IO_DATAGRAM_SEGMENTS, quic_now(e));
		if (n < 0) quic_end(c, (int)n);
		if (n <= 0) break;
		send_packets(c->socket, &path.path, e->packets, (size_t)n, segment, info.ecn);
		e->context->sent += (uint64_t)n;
		sent += ((size_t)n + segment - 1) / segment;
	}
	ngtcp2_conn_update_pkt_tx_time(c->conn, quic_now(e));
	quic_end_drained(c);
	quic_count_memory(c, quic_connection_memory(c));
	if (!c->ended) set_alarm(c, sent >= QUIC_DATAGRAMS);
}
