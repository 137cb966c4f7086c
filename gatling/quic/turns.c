/* turns.c - see endpoint.h: clients that take more than their share of the worker's time (load/fair.c) come after the
 * others, and for a limited time in each turn: their datagrams are put aside, and their connections send last. */
#include "gatling/quic/endpoint.h"

void quic_take_counted(struct quic_connection *c, const struct quic_datagram *d) {
	const struct conn_context *w = c->quic->context;
	const int64_t begun_ns = w->turns->begun(w);
	quic_take(c, d);
	if (begun_ns) w->turns->ended(w, quic_client(c), begun_ns);
}

static void take(struct quic *e, struct quic_connection *c, const struct quic_datagram *d) {
	if (c) quic_take_counted(c, d);
	else quic_begin_later(e, d);
}

void quic_take_in_turn(struct quic *e, struct quic_connection *c, const struct quic_datagram *d) {
	const struct conn_context *w = e->context;
	const struct peer sender = c ? peer_unknown : peer_of(d->path.remote.addr);
	if (!w->turns->waits(w, c ? quic_client(c) : conn_owner(w, &sender))) {
		take(e, c, d);
		return;
	}
	e->reads_on = true;
	(void)quic_queue_add(&e->aside, d, 0); /* otherwise it is lost, as in a socket whose queue is full */
}

void quic_take_aside(struct quic *e) {
	struct quic_queue *q = &e->aside;
	const int64_t until_ns = q->first ? io_read_clock() + e->context->turns->turn_ns(e->context) : 0;
	for (bool more = q->first; more; more = quic_queue_drop(q) && q->first && io_read_clock() < until_ns) {
		struct quic_connection *c = quic_connection_for(e, &q->first->datagram);
		const bool behind = !c && e->beginning.first; /* others begin before it; */
		if (behind && !quic_is_overloaded(e)) return;
		if (!behind) take(e, c, &q->first->datagram); /* under overload, it is dropped */
	}
}

/* Has a connection send. Returns false if it has to go on later, or sooner if its socket takes more. */
static void write_one(struct quic *e, struct quic_connection *c) {
	const struct conn_context *w = e->context;
	const bool blocked = c->socket->held.bytes && !c->ended;
	const int64_t begun_ns = blocked ? 0 : w->turns->begun(w);
	const bool done = blocked || c->ended || quic_write(c);
	if (begun_ns) w->turns->ended(w, quic_client(c), begun_ns);
	c->pending = false; /* what it has wanted meanwhile is written */
	if (blocked || !done) quic_wants_write(c);
	else if (c->ended) quic_free_connection(c);
	else if (c->open) quic_handshake_end(c);
}

void quic_write_all(struct quic *e) {
	struct conn_context *w = e->context;
	const struct quic_connection *last = e->last_unsent;
	const uint64_t until = w->sent + w->share;
	struct quic_connection *c, *waiting = NULL, **end = &waiting;
	for (bool all = false; !all && w->sent < until && (c = quic_next_unsent(e));) {
		all = c == last;
		if (c->ended || !w->turns->waits(w, quic_client(c))) {
			write_one(e, c);
			continue;
		}
		*end = c;
		end = &c->next_unsent;
		*end = NULL;
	}
	const int64_t until_ns = waiting ? io_read_clock() + w->turns->turn_ns(w) : 0;
	for (bool first = true; (c = waiting); first = false) {
		waiting = c->next_unsent;
		if (first || io_read_clock() < until_ns) {
			write_one(e, c); /* which may free it */
			continue;
		}
		c->pending = false;
		quic_wants_write(c);
	}
}
