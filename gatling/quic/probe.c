/* probe.c - see endpoint.h: the server asks its own port, with a version that there is not (RFC 9000, section 6), so
 * that it announces HTTP/3 only where its datagrams come through. */
#include <arpa/inet.h>

#include "gatling/quic/endpoint.h"

enum { VERSION = 0x1a2a3a4a, FIRST = 0xc0 /* of a long header (RFC 9000, section 17.2) */ };

/* Returns where others on this machine reach the socket. */
static union io_address own_address(int fd) {
	union io_address a = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof a;
	(void)getsockname(fd, &a.any, &length);
	if (a.any.sa_family == AF_INET && a.ipv4.sin_addr.s_addr == htonl(INADDR_ANY))
		a.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a.ipv6.sin6_addr)) a.ipv6.sin6_addr = in6addr_loopback;
	return a;
}

static void probe(struct quic *e, const struct quic_cookie *s) {
	union io_address a = own_address(s->fd);
	uint8_t packet[QUIC_INITIAL_MIN] = {FIRST}, *at = packet + 1;
	ngtcp2_path_storage path;
	ngtcp2_cid destination;
	if (!quic_id_make(e, &destination) || (!e->probe.datalen && !quic_id_make(e, &e->probe))) return;
	const uint32_t version = htonl(VERSION);
	memcpy(at, &version, sizeof version);
	at += sizeof version;
	for (int i = 0; i < 2; i++) {
		const ngtcp2_cid *cid = i ? &e->probe : &destination;
		*at++ = (uint8_t)cid->datalen;
		memcpy(at, cid->data, cid->datalen);
		at += cid->datalen;
	}
	quic_set_path(&path, &a, &a);
	quic_send(s, &path.path, packet, sizeof packet);
}

void quic_probe(struct quic *e) {
	if (e->reachable || !e->begun_ns || !e->sockets) return;
	const int64_t now_ms = io_now(e->context->loop);
	if (now_ms - e->probed_ms < QUIC_PROBE_MS) return;
	e->probed_ms = now_ms;
	probe(e, &e->cookie[e->sockets - 1]);
}

bool quic_probe_answered(struct quic *e, const ngtcp2_version_cid *id) {
	const bool answered = !id->version && id->dcidlen && id->dcidlen == e->probe.datalen &&
						  memcmp(id->dcid, e->probe.data, id->dcidlen) == 0;
	e->reachable |= answered;
	return answered;
}
