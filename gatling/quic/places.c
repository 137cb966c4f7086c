/* places.c - see endpoint.h: the connections of a worker by their numbers, and what load/ asks of them (conn_kind.h).
 */
#include <stdlib.h>

#include "gatling/quic/endpoint.h"
#include "gatling/status/counters.h"

static bool grow(struct quic *e) {
	const int room = e->places ? 2 * e->places : QUIC_PLACES;
	struct quic_connection **grown = realloc(e->place, (size_t)room * sizeof(struct quic_connection *));
	if (!grown) return false;
	memset(grown + e->places, 0, (size_t)(room - e->places) * sizeof(struct quic_connection *));
	e->place = grown;
	e->places = room;
	return true;
}

bool quic_place_add(struct quic_connection *c) {
	struct quic *e = c->quic;
	while (e->free_place < e->places && e->place[e->free_place]) e->free_place++;
	if (e->free_place == e->places && !grow(e)) return false;
	c->place = e->free_place;
	e->place[c->place] = c;
	return true;
}

void quic_place_remove(const struct quic_connection *c) {
	struct quic *e = c->quic;
	e->place[c->place] = NULL;
	if (c->place < e->free_place) e->free_place = c->place;
	rate_windows_forget(&e->context->rate, CONN_QUIC, c->place);
}

const struct peer *quic_client(const struct quic_connection *c) { return conn_owner(c->quic->context, &c->peer); }

/* --- what load/ asks --- */

static int bound(const struct conn_context *w) { return w->quic->places; }

static void *at(const struct conn_context *w, int number) {
	struct quic_connection *c = number < w->quic->places ? w->quic->place[number] : NULL;
	return c && !c->ended ? c : NULL;
}

static const struct peer *peer(const void *connection) { return quic_client(connection); }

static int64_t since(const void *connection) {
	const struct quic_connection *c = connection;
	return c->open && http3_streams(c->http3)->progress ? io_now(c->quic->context->loop) : c->since_ms;
}

static bool is_unfinished(const void *connection) { return !((const struct quic_connection *)connection)->open; }

static bool is_idle(const void *connection) {
	const struct quic_connection *c = connection;
	return c->open && http3_wait(c->http3).what == WAIT_REQUEST;
}

static int64_t transferred(const void *connection) {
	const struct quic_connection *c = connection;
	if (!c->open || http3_streams(c->http3)->postpones) return -1;
	const enum wait_for what = http3_wait(c->http3).what;
	return what == WAIT_CLIENT_SENDS || what == WAIT_CLIENT_TAKES ? (int64_t)http3_transferred(c->http3) : -1;
}

static struct conn_memory memory(const void *connection) {
	return ((const struct quic_connection *)connection)->memory;
}

static bool close_for(struct conn_context *w, void *connection, enum conn_closing why) {
	struct quic_connection *c = connection;
	if (why == CONN_CLOSE_DEAR) count_one(COUNT_CLOSED_MEMORY);
	if (!c->open) quic_end(c, NGTCP2_ERR_DROP_CONN);
	else quic_close(c, is_idle(c) ? HTTP3_NO_ERROR : HTTP3_EXCESSIVE_LOAD);
	quic_wants_write(c);
	(void)io_alarm_set(w->loop, &w->quic->alarm, io_now_ns(w->loop)); /* it is freed in the next turn at the latest */
	return true;
}

const struct conn_kind quic_kind = {.bound = bound,
									.at = at,
									.peer = peer,
									.since = since,
									.is_idle = is_idle,
									.is_unfinished = is_unfinished,
									.transferred = transferred,
									.memory = memory,
									.close = close_for};
