/* deadline.c - see endpoint.h: how long a connection may wait, by what it waits for (exchange/wait.h), and which ones
 * end when memory or connections run short. What ngtcp2 counts, handshakes and silence, has its own alarms. */
#include "gatling/quic/endpoint.h"
#include "gatling/status/counters.h"

enum { SHED_MOST = 16 }; /* connections that are closed for memory in a turn */

/* Ends a connection that HTTP/3 does not end by itself. */
static void end(struct quic_connection *c, enum http3_error error, enum value counted) {
	count_one(counted);
	quic_close(c, error);
	quic_wants_write(c);
}

/* Returns the seconds that a connection may wait without progress; 0: no limit. */
static int limit_s(const struct quic_connection *c, enum wait_for what) {
	const struct conn_options *o = c->quic->context->options;
	if (what == WAIT_UPSTREAM || what == WAIT_TUNNEL) return 0; /* upstreams have limits of their own */
	if (what == WAIT_REQUEST && c->draining) return QUIC_LAST_S;
	return what == WAIT_REQUEST ? o->keepalive_timeout_s : o->timeout_s;
}

static void check(struct quic_connection *c, int64_t now_ms) {
	struct streams *t = http3_streams(c->http3);
	const struct waiting wait = http3_wait(c->http3);
	const int64_t limit_ms = (int64_t)limit_s(c, wait.what) * 1000;
	if (streams_take_progress(t) || wait.what != c->waits) c->since_ms = now_ms;
	c->waits = wait.what;
	if (!limit_ms || now_ms - c->since_ms < limit_ms) return;
	c->since_ms = now_ms;
	if (wait.what == WAIT_JOB) {
		if (streams_give_up_waiting(t, io_now_ns(c->quic->context->loop) - limit_ms * 1000000)) quic_wants_write(c);
	} else if (wait.what == WAIT_REQUEST && c->draining && http3_drain(c->http3)) {
		quic_wants_write(c);
	} else if (wait.what == WAIT_REQUEST) {
		end(c, HTTP3_NO_ERROR, COUNT_CLOSED_KEEPALIVE);
	} else {
		end(c, HTTP3_REQUEST_INCOMPLETE, COUNT_CLOSED_STALLED);
	}
}

/* Returns since when a connection has waited for a request; 0: it does not. */
static int64_t idle_since(const struct quic_connection *c) {
	if (!c->http3 || http3_wait(c->http3).what != WAIT_REQUEST) return 0;
	return http3_streams(c->http3)->progress ? io_now(c->quic->context->loop) : c->since_ms;
}

/* Returns the connection that is closed first to make room: of those that wait for a request, the one that has done so
 * longest; otherwise the one that takes most memory. */
static struct quic_connection *victim(const struct quic *e) {
	struct quic_connection *found = NULL;
	int64_t idle = 0;
	for (struct quic_connection *c = e->first; c; c = c->next) {
		const int64_t since = idle_since(c);
		if (c->ended || (idle && !since)) continue;
		if (found && (idle || !since) && (since ? since > idle : c->memory <= found->memory)) continue;
		found = c;
		idle = since;
	}
	return found;
}

bool quic_is_full(const struct quic *e) {
	const struct conn_context *w = e->context;
	return w->quic_memory > w->memory_max / QUIC_MEMORY_PART || conn_context_memory(w) > w->memory_max;
}

bool quic_has_most(const struct quic *e) {
	const struct conn_context *w = e->context;
	return e->connections >= w->connections_max / QUIC_CONNECTIONS_PART || w->connections >= w->connections_max;
}

bool quic_make_room(struct quic *e) {
	struct quic_connection *c = victim(e);
	const int64_t since_ms = c ? idle_since(c) : 0;
	if (!since_ms || io_now(e->context->loop) - since_ms < QUIC_IDLE_LEAST_MS) return false;
	end(c, HTTP3_NO_ERROR, COUNT_CLOSED_IDLE);
	return true;
}

void quic_check_later(struct quic *e) {
	io_loop *loop = e->context->loop;
	(void)io_alarm_set(loop, &e->alarm, io_now_ns(loop) + INT64_C(1000000) * QUIC_CHECK_MS); /* or with other events */
}

void quic_check(struct quic *e) {
	const int64_t now_ms = io_now(e->context->loop);
	struct quic_connection *c;
	for (int i = 0; i < SHED_MOST && quic_is_full(e) && (c = victim(e)); i++) {
		end(c, idle_since(c) ? HTTP3_NO_ERROR : HTTP3_EXCESSIVE_LOAD, COUNT_CLOSED_MEMORY);
		quic_count_memory(c, 0); /* it is freed in this turn */
	}
	if (now_ms - e->checked_ms < QUIC_CHECK_MS) return;
	e->checked_ms = now_ms;
	if (e->first) quic_check_later(e);
	for (c = e->first; c; c = c->next)
		if (!c->ended && c->http3) check(c, now_ms);
}
