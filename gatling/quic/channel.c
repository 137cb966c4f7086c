/* channel.c - see endpoint.h: datagrams of other workers and processes (keeper/datagram_sockets.h). A client's first ID
 * says nothing of its process: as long as the process before may have begun a handshake with it, that is asked first,
 * and returns what it does not know. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "gatling/quic/endpoint.h"

enum { MESSAGES = 64 }; /* that are received from a channel in a turn */

/* What stands in front of a datagram in a channel. */
struct forwarded {
	union io_address peer, local;
	uint16_t port; /* of the socket on which it has come */
	uint8_t ecn, hops, returned;
};

static bool adopt(struct quic_cookie *c, int fd, struct quic *e, const struct datagram_channel *channel) {
	*c = (struct quic_cookie){.kind = COOKIE_QUIC, .is = QUIC_CHANNEL, .fd = fd, .quic = e, .channel = channel};
	return io_fd(e->context->loop, fd, c) == 0;
}

int quic_channels_open(struct quic *e, struct quic_cookie *cookie) {
	const struct datagram_sockets *s = e->shared;
	const struct datagram_channel *own = datagram_channel_of(s, e->worker);
	int count = 0;
	e->message = malloc(sizeof(struct forwarded) + IO_DATAGRAM_ROOM);
	if (!e->message || !adopt(&cookie[count++], own->inner, e, own)) return -1;
	for (unsigned i = 0; i < s->before; i++) {
		const struct datagram_channel *c = &s->channel[i];
		if (c->worker % e->workers == e->worker && !adopt(&cookie[count++], c->outer, e, c)) return -1;
	}
	return count;
}

/* The own channel is watched to the end; the others are the successor's, when there is one. */
void quic_channels_watch(struct quic *e, bool watch) {
	for (unsigned i = 0; i < e->channels; i++) {
		const struct quic_cookie *c = &e->cookie[e->sockets + i];
		if (watch) (void)io_wantread(e->context->loop, c->fd);
		else if (i) io_dontwantread(e->context->loop, c->fd);
	}
}

/* --- receiving --- */

/* Returns the socket with that port, or the first one. */
static struct quic_cookie *socket_of(struct quic *e, unsigned port) {
	for (unsigned i = 0; i < e->sockets; i++)
		if (e->cookie[i].port == port) return &e->cookie[i];
	return e->sockets ? e->cookie : NULL;
}

/* Returns whether the addresses are such as a datagram has: ngtcp2 ends the process for others. */
static bool is_sound(const struct forwarded *f) {
	const sa_family_t family = f->peer.any.sa_family;
	return (family == AF_INET || family == AF_INET6) && f->local.any.sa_family == family;
}

static void take_message(struct quic *e, size_t length) {
	struct forwarded f;
	ngtcp2_path_storage path;
	memcpy(&f, e->message, sizeof f);
	if (!is_sound(&f)) return;
	quic_set_path(&path, &f.local, &f.peer);
	const struct quic_datagram d = {.socket = socket_of(e, f.port),
									.path = path.path,
									.bytes = (const uint8_t *)e->message + sizeof f,
									.length = length - sizeof f,
									.ecn = f.ecn,
									.hops = f.hops,
									.returned = f.returned};
	if (d.socket) quic_take_datagram(e, &d);
}

void quic_channel_readable(struct quic_cookie *channel) {
	struct quic *e = channel->quic;
	io_loop *loop = e->context->loop;
	for (int i = 0; i < MESSAGES; i++) {
		const ssize_t n = io_tryread(loop, channel->fd, e->message, sizeof(struct forwarded) + IO_DATAGRAM_ROOM);
		if (n == -1) return;
		if (n > (ssize_t)sizeof(struct forwarded)) take_message(e, (size_t)n);
		if (n > 0 || channel->channel->inner == channel->fd) continue; /* the own channel has no end: 0 is a message */
		channel->gone = true;
		io_dontwantread(loop, channel->fd);
		return;
	}
}

/* --- sending --- */

/* Sends a datagram through a channel. If that is full, the datagram is lost. Returns false if nobody receives any
 * more. */
static bool forward(const struct quic_datagram *d, int fd, bool returned) {
	struct forwarded f = {
		.port = (uint16_t)d->socket->port, .ecn = d->ecn, .hops = (uint8_t)(d->hops + 1), .returned = returned};
	struct iovec part[] = {{.iov_base = &f, .iov_len = sizeof f},
						   {.iov_base = (void *)(uintptr_t)d->bytes, .iov_len = d->length}};
	const struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
	if (d->hops >= QUIC_HOPS) return true;
	memcpy(&f.peer, d->path.remote.addr, d->path.remote.addrlen);
	memcpy(&f.local, d->path.local.addr, d->path.local.addrlen);
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != -1 || (errno != EPIPE && errno != ECONNRESET);
}

/* Sends a datagram to another worker of this process. Returns false if it is this one. */
static bool forward_to_worker(const struct quic *e, const struct quic_datagram *d, unsigned worker, bool returned) {
	if (worker == e->worker) return false;
	(void)forward(d, datagram_channel_of(e->shared, worker)->outer, returned);
	return true;
}

static bool is_gone(const struct quic *e, const struct datagram_channel *channel) {
	for (unsigned i = 0; i < e->channels; i++)
		if (e->cookie[e->sockets + i].channel == channel) return e->cookie[e->sockets + i].gone;
	return true;
}

/* Sends a datagram to a process before this one, through the worker that has the channel. Returns false if that process
 * has ended. */
static bool forward_back(const struct quic *e, const struct quic_datagram *d, const ngtcp2_version_cid *id,
						 uint8_t generation) {
	for (unsigned i = 0; i < e->shared->before; i++) {
		const struct datagram_channel *c = &e->shared->channel[i];
		if (c->generation != generation || quic_id_worker(id->dcid, id->dcidlen, c->workers) != c->worker) continue;
		if (forward_to_worker(e, d, c->worker % e->workers, false)) return true;
		return !is_gone(e, c) && forward(d, c->outer, false);
	}
	return false;
}

/* Passes on a datagram with an ID that one of these processes has made. */
static bool pass_on_known(const struct quic *e, const struct quic_datagram *d, const ngtcp2_version_cid *id,
						  uint8_t generation) {
	const int8_t age = (int8_t)(e->shared->generation - generation);
	if (age > 0) return forward_back(e, d, id, generation);
	if (age == 0) return forward_to_worker(e, d, quic_id_worker(id->dcid, id->dcidlen, e->workers), false);
	return forward(d, e->cookie[e->sockets].fd, false);
}

/* Passes on a datagram that begins a connection, or belongs to a handshake that the process before has begun. */
static bool pass_on_initial(const struct quic *e, const struct quic_datagram *d, const ngtcp2_version_cid *id) {
	const int64_t until_ns = e->begun_ns + QUIC_HANDSHAKE_S * INT64_C(1000000000);
	if (e->handed_over) {
		(void)forward(d, e->cookie[e->sockets].fd, true);
		return true;
	}
	return (!d->returned && io_now_ns(e->context->loop) < until_ns &&
			forward_back(e, d, id, (uint8_t)(e->shared->generation - 1))) ||
		   forward_to_worker(e, d, quic_id_worker(id->dcid, id->dcidlen, e->workers), true);
}

bool quic_pass_on(struct quic *e, const struct quic_datagram *d, const ngtcp2_version_cid *id, bool initial) {
	uint8_t generation;
	const bool known = quic_id_read(e, id->dcid, id->dcidlen, &generation);
	if (known && !(initial && (d->returned || e->handed_over)) && pass_on_known(e, d, id, generation)) return true;
	return initial ? pass_on_initial(e, d, id) : !known;
}
