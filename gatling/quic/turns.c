/* turns.c - see endpoint.h: clients that take more than their share of the worker's time (load/fair.c) come after the
 * others, and for a limited time in each turn: their datagrams are put aside, and their connections send last. */
#include <stdlib.h>

#include "gatling/quic/endpoint.h"

/* A datagram that waits. */
struct quic_aside {
	struct quic_aside *next;
	struct quic_datagram datagram;
	ngtcp2_path_storage path;
	uint8_t bytes[];
};

static size_t size_of(const struct quic_aside *a) { return sizeof *a + a->datagram.length; }

/* Gives a datagram to its connection. c: NULL if it begins one. */
static void take(struct quic *e, struct quic_connection *c, const struct quic_datagram *d) {
	const struct conn_context *w = e->context;
	const int64_t begun_ns = w->turns->begun(w);
	if (!c) c = quic_begin(e, d);
	if (c) quic_take(c, d);
	if (c && begun_ns) w->turns->ended(w, quic_client(c), begun_ns);
}

/* Puts a datagram aside. Without room or memory it is lost, as in a socket whose queue is full. */
static void put_aside(struct quic *e, const struct quic_datagram *d) {
	e->puts_aside = true;
	struct quic_aside *a = e->aside_bytes < QUIC_ASIDE ? malloc(sizeof *a + d->length) : NULL;
	if (!a) return;
	*a = (struct quic_aside){.datagram = *d};
	ngtcp2_path_storage_init(&a->path, d->path.local.addr, d->path.local.addrlen, d->path.remote.addr,
							 d->path.remote.addrlen, NULL);
	a->datagram.path = a->path.path;
	a->datagram.bytes = memcpy(a->bytes, d->bytes, d->length);
	e->aside_bytes += size_of(a);
	if (e->last_aside) e->last_aside->next = a;
	else e->first_aside = a;
	e->last_aside = a;
}

void quic_take_in_turn(struct quic *e, struct quic_connection *c, const struct quic_datagram *d) {
	const struct conn_context *w = e->context;
	const struct peer sender = c ? peer_unknown : peer_of(d->path.remote.addr);
	if (w->turns->waits(w, c ? quic_client(c) : conn_owner(w, &sender))) put_aside(e, d);
	else take(e, c, d);
}

static bool drop_first(struct quic *e) {
	struct quic_aside *a = e->first_aside;
	if (!a) return false;
	e->aside_bytes -= size_of(a);
	e->first_aside = a->next;
	if (!e->first_aside) e->last_aside = NULL;
	free(a);
	return true;
}

void quic_take_aside(struct quic *e) {
	ngtcp2_version_cid id;
	const int64_t until_ns = e->first_aside ? io_read_clock() + e->context->turns->turn_ns(e->context) : 0;
	for (bool more = e->first_aside; more; more = drop_first(e) && e->first_aside && io_read_clock() < until_ns) {
		const struct quic_datagram *d = &e->first_aside->datagram;
		(void)ngtcp2_pkt_decode_version_cid(&id, d->bytes, d->length, QUIC_ID_LENGTH);
		take(e, quic_table_find(&e->table, id.dcid, id.dcidlen), d);
	}
}

void quic_drop_aside(struct quic *e) {
	while (drop_first(e)) {}
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
