/* probe.c - see endpoint.h: the server sends datagrams to its own port, of a version that there is not (RFC 9000,
 * section 15), so that it announces HTTP/3 only where they come through. */
#include <arpa/inet.h>

#include "gatling/base/notice.h"
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

/* Says what is wrong, once for the whole process. */
static void give_up(struct quic *e, unsigned port) {
	e->reachable = false;
	notice(0,
		   "UDP port %u gets nothing, not even from this machine: HTTP/3 is not announced; let the firewall accept UDP "
		   "to it",
		   port);
}

void quic_probe(struct quic *e) {
	if (!e->begun_ns || !e->sockets || e->handed_over) return;
	const int64_t now_ms = io_now(e->context->loop);
	const struct quic_cookie *s = &e->cookie[e->sockets - 1];
	if (now_ms - e->probed_ms < (e->missing ? QUIC_PROBE_MS : QUIC_PROBE_AGAIN_MS)) return;
	if (e->missing == QUIC_PROBES) give_up(e, s->port);
	if (e->missing <= QUIC_PROBES) e->missing++;
	if (e->missing <= QUIC_PROBES) quic_check_later(e); /* it is soon known, also without clients */
	e->probed_ms = now_ms;
	probe(e, s);
}

bool quic_probe_arrived(struct quic *e, const struct quic_datagram *d, const ngtcp2_version_cid *id) {
	uint8_t generation;
	if (id->version != VERSION) return false;
	if (id->scidlen && id->scidlen == e->probe.datalen && memcmp(id->scid, e->probe.data, id->scidlen) == 0) {
		e->missing = 0;
		e->reachable = true;
		return true;
	}
	return quic_id_read(e, id->dcid, id->dcidlen, &generation) && quic_pass_on(e, d, id, false);
}
