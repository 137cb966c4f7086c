/* deadline.c - see conn.h and conn_state.h: what a connection waits for, and how long it may. The deadline is set when
 * the state changes, and again when output makes progress or 4 KB of content were passed on, so that bytes that trickle
 * in do not move it. */
#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/conn_state.h"
#include "gatling/http2/http2.h"

/* --- what it waits for --- */

static struct waiting wait_of(enum wait_for what) { return (struct waiting){.what = what}; }

/* Returns whether the time of a head ends before that of a client that takes nothing. */
static bool head_ends_first(const struct conn_options *o) {
	return o->head_timeout_s && (!o->timeout_s || o->head_timeout_s <= o->timeout_s);
}

static struct waiting http2_wait_of(const struct conn *c) {
	const struct waiting wait = http2_waits(c->http2);
	if (!c->frames_wait || wait.what == WAIT_DRAIN) return wait;
	return wait.what == WAIT_HEAD && head_ends_first(c->context->options) ? wait : wait_of(WAIT_CLIENT_TAKES);
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

bool conn_waits_for_client(const struct conn *c) {
	const enum wait_for what = conn_waits(c).what;
	const bool in_block = what == WAIT_HEAD && c->state == CONN_HTTP2; /* it has streams to take, too, or could have */
	/* the end of the last response may still be in the kernel */
	const bool ends = what == WAIT_LINGER || (what == WAIT_REQUEST && c->state == CONN_HTTP2);
	if (ends) return platform_send_queue(c->fd) > 0;
	return (in_block || what == WAIT_CLIENT_SENDS || what == WAIT_CLIENT_TAKES) && !io_reading(c->context->loop, c->fd);
}

/* --- how long --- */

#define NEVER_MS INT64_C(3153600000000) /* a hundred years, for a timeout that is switched off */

static int64_t milliseconds(int seconds) { return seconds ? (int64_t)seconds * 1000 : NEVER_MS; }

static int64_t linger_ms(const struct conn *c) {
	return c->context->draining == DRAIN_IDLE ? CONN_LINGER_LAST_MS : CONN_LINGER_MS;
}

/* Returns how much of a time limit has passed already. A request that waits for a job, or a head of HTTP/2 that comes
 * in parts, has its own, whatever other streams do. */
static int64_t waited_ms(const struct conn *c, struct waiting wait) {
	return wait.since_ns ? (c->context->site.now_ns - wait.since_ns) / 1000000 : 0;
}

static int64_t timeout_ms(const struct conn *c) {
	const struct conn_options *o = c->context->options;
	const struct waiting wait = conn_waits(c);
	switch (wait.what) {
	case WAIT_REQUEST: return milliseconds(o->keepalive_timeout_s);
	case WAIT_HEAD: return milliseconds(o->head_timeout_s) - waited_ms(c, wait);
	case WAIT_CLIENT_SENDS:
	case WAIT_CLIENT_TAKES: return milliseconds(o->timeout_s);
	case WAIT_JOB: return milliseconds(o->timeout_s) - waited_ms(c, wait);
	case WAIT_TUNNEL:
	case WAIT_UPSTREAM:
		if (c->input_ended && c->state == CONN_PASS) return CONN_GONE_MS;
		return wait.what == WAIT_TUNNEL && c->context->draining ? CONN_TUNNEL_LAST_MS : NEVER_MS;
	case WAIT_DRAIN: return HTTP2_DRAIN_MS;
	case WAIT_LINGER: break;
	}
	return linger_ms(c);
}

static void set_timer(struct conn *c) {
	c->since_ms = c->context->site.now_ms;
	io_timeout(c->context->loop, c->fd, c->since_ms + timeout_ms(c));
}

/* Leaves the length of the send queue unknown, which saves a system call: the first deadline then counts as progress.
 */
void conn_set_deadline(struct conn *c) {
	set_timer(c);
	c->unacknowledged = INT32_MAX;
}

/* Returns whether the client has acknowledged anything since the last deadline. The loop cannot tell: a socket becomes
 * writable only when much of its buffer is free, which with a slow reader takes longer than the timeout. So a client is
 * given up between one and two timeouts after its last acknowledgement. */
static bool has_acknowledged(struct conn *c) {
	long queued = platform_send_queue(c->fd);
	bool acknowledged = queued != -1 && queued < c->unacknowledged;
	c->unacknowledged = (int32_t)queued;
	return acknowledged;
}

/* Lingering ends when everything is acknowledged, or nothing has been for timeout_s, rounded up to CONN_LINGER_MS. */
static bool still_lingers(struct conn *c, bool acknowledged) {
	c->linger.stalled_ms = acknowledged ? 0 : c->linger.stalled_ms + (uint32_t)linger_ms(c);
	return c->unacknowledged > 0 && c->linger.stalled_ms < milliseconds(c->context->options->timeout_s);
}

bool conn_give_up_waiting(struct conn *c) {
	int64_t now_ns = c->context->site.now_ns, timeout_ns = milliseconds(c->context->options->timeout_s) * 1000000;
	if (c->state == CONN_HTTP2) return streams_give_up_waiting(http2_streams(c->http2), now_ns - timeout_ns);
	if (c->state == CONN_JOB) exchange_give_up(c->exchange);
	return c->state == CONN_JOB;
}

/* Returns whether the client that waits for an upstream has gone since it ended its side. */
static bool is_gone(const struct conn *c) { return c->state == CONN_PASS && c->input_ended && conn_is_reset(c); }

bool conn_extend_deadline(struct conn *c, enum wait_for what) {
	bool acknowledged = has_acknowledged(c), extended = false;
	switch (what) {
	case WAIT_LINGER: extended = still_lingers(c, acknowledged); break;
	case WAIT_CLIENT_TAKES: extended = acknowledged || io_reading(c->context->loop, c->fd); break;
	case WAIT_UPSTREAM: extended = !is_gone(c); break;
	case WAIT_TUNNEL: extended = !c->context->draining && !is_gone(c); break;
	case WAIT_JOB: extended = true; break;
	case WAIT_HEAD: break;
	case WAIT_REQUEST:
	case WAIT_CLIENT_SENDS:
	case WAIT_DRAIN: /* on HTTP/2 the client may still take the end of other responses */
		extended = c->http2 && acknowledged && c->unacknowledged > 0;
		break;
	}
	if (extended) set_timer(c);
	return extended;
}
