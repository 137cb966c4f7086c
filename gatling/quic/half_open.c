/* half_open.c - see endpoint.h: the handshakes that are under way, which cost a client nothing until its address is
 * validated, and little then. */
#include "gatling/quic/endpoint.h"

void quic_half_open_add(struct quic_connection *c) {
	struct quic *e = c->quic;
	c->half_open = true;
	c->younger = NULL;
	c->older = e->newest;
	*(c->older ? &c->older->younger : &e->oldest) = c;
	e->newest = c;
	e->half_open++;
}

void quic_half_open_remove(struct quic_connection *c) {
	struct quic *e = c->quic;
	if (!c->half_open) return;
	c->half_open = false;
	*(c->older ? &c->older->younger : &e->oldest) = c->younger;
	*(c->younger ? &c->younger->older : &e->newest) = c->older;
	e->half_open--;
}

bool quic_half_open_room(struct quic *e, const struct peer *peer) {
	const uint64_t network = peer_network(conn_owner(e->context, peer));
	struct quic_connection *victim = NULL;
	unsigned same = 0;
	if (e->half_open < QUIC_HALF_OPEN) return true;
	for (struct quic_connection *c = e->oldest; c; c = c->younger) {
		same += network && peer_network(&c->peer) == network;
		if (!victim && !c->validated) victim = c;
	}
	if (same >= QUIC_HALF_OPEN_ADDRESS) return false;
	if (e->half_open < QUIC_HALF_OPEN_MAX) return true;
	if (!victim) victim = e->oldest;
	quic_end(victim, NGTCP2_ERR_DROP_CONN);
	quic_wants_write(victim); /* it is freed at the end of the turn */
	return true;
}
