/* conn_waits.c - see conn.h: what a connection waits for. */
#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/conn_state.h"
#include "gatling/http2/http2.h"

static struct waiting wait_of(enum wait_for what) { return (struct waiting){.what = what}; }

static struct waiting http2_wait_of(const struct conn *c) {
	if (http2_end_announced(c->http2)) return wait_of(WAIT_DRAIN);
	return c->frames_wait ? wait_of(WAIT_CLIENT_TAKES) : http2_waits(c->http2);
}

struct waiting conn_waits(const struct conn *c) {
	switch ((enum conn_state)c->state) {
	case CONN_PROXY:
	case CONN_HANDSHAKE:
	case CONN_HEAD: return wait_of(WAIT_HEAD);
	case CONN_IDLE: return wait_of(WAIT_REQUEST);
	case CONN_BODY: return wait_of(WAIT_CLIENT_SENDS);
	case CONN_CONTINUE:
	case CONN_WRITE: return wait_of(WAIT_CLIENT_TAKES);
	case CONN_JOB: return (struct waiting){.what = WAIT_JOB, .since_ns = c->exchange->waits_since_ns};
	case CONN_PASS: return wait_of(conn_relay_waits(c));
	case CONN_HTTP2: return http2_wait_of(c);
	case CONN_LINGER:
	case CONN_CLOSED: break;
	}
	return wait_of(WAIT_LINGER);
}

bool conn_is_idle(const struct conn *c) { return conn_waits(c).what == WAIT_REQUEST; }
bool conn_is_unfinished(const struct conn *c) { return conn_waits(c).what == WAIT_HEAD; }

bool conn_waits_for_client(const struct conn *c) {
	const enum wait_for what = conn_waits(c).what;
	const bool in_block = what == WAIT_HEAD && c->state == CONN_HTTP2; /* it has streams to take, too, or could have */
	/* the end of the last response may still be in the kernel */
	const bool ends = what == WAIT_LINGER || (what == WAIT_REQUEST && c->state == CONN_HTTP2);
	if (ends) return platform_send_queue(c->fd) > 0;
	return (in_block || what == WAIT_CLIENT_SENDS || what == WAIT_CLIENT_TAKES) && !io_reading(c->context->loop, c->fd);
}
