/* deadline.c - see endpoint.h: how long a connection may wait, by what it waits for (exchange/wait.h). What ngtcp2
 * counts, handshakes and silence, has its own alarms. */
#include "gatling/quic/endpoint.h"
#include "gatling/status/counters.h"

/* Ends a connection that HTTP/3 does not end by itself. */
static void end(struct quic_connection *c, enum http3_error error, enum value counted) {
	count_one(counted);
	quic_close(c, error);
	quic_wants_write(c);
}

/* Returns the seconds that a connection may wait without progress; 0: no limit here. */
static int limit_s(const struct quic_connection *c, enum wait_for what) {
	const struct conn_options *o = c->quic->context->options;
	if (what == WAIT_UPSTREAM || what == WAIT_TUNNEL) return 0; /* upstreams have limits of their own */
	if (what == WAIT_REQUEST && c->draining) return QUIC_LAST_S;
	if (!c->open) return 0; /* HTTP/3 begins before the end of the handshake, which ngtcp2 waits for */
	return what == WAIT_REQUEST ? o->keepalive_timeout_s : o->timeout_s;
}

/* Each head has its time, whatever comes on other streams. */
static void check_heads(struct quic_connection *c, int64_t now_ms) {
	const int limit_s = c->quic->context->options->head_timeout_s;
	if (limit_s && http3_end_late(c->http3, now_ms - (int64_t)limit_s * 1000)) quic_wants_write(c);
}

static void check(struct quic_connection *c, int64_t now_ms) {
	struct streams *t = http3_streams(c->http3);
	check_heads(c, now_ms);
	const struct waiting wait = http3_wait(c->http3);
	const int64_t limit_ms = (int64_t)limit_s(c, wait.what) * 1000;
	if ((streams_take_progress(t) && c->open) || wait.what != c->waits) c->since_ms = now_ms;
	c->waits = wait.what;
	if (!limit_ms || now_ms - c->since_ms < limit_ms) return;
	/* it has its own time; those that have begun later count for nothing */
	if (wait.what == WAIT_REQUEST && http3_receives_head(c->http3, c->since_ms + limit_ms)) return;
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

void quic_check_later(struct quic *e) {
	io_loop *loop = e->context->loop;
	(void)io_alarm_set(loop, &e->alarm, io_now_ns(loop) + INT64_C(1000000) * QUIC_CHECK_MS); /* or with other events */
}

void quic_check(struct quic *e) {
	const int64_t now_ms = io_now(e->context->loop);
	if (now_ms - e->checked_ms < QUIC_CHECK_MS) return;
	e->checked_ms = now_ms;
	for (int i = 0; i < e->places; i++) {
		struct quic_connection *c = e->place[i];
		if (c && !c->ended && c->http3) check(c, now_ms);
	}
}
