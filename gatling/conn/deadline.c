/* deadline.c - see conn_state.h: how long each state may last. The deadline is set when the state changes, and again
 * when output makes progress, so that bytes that trickle in do not move it. An HTTP/2 request that waits for a job has
 * its own time limit, whatever the other streams do. */
#include "gatling/base/platform.h"
#include "gatling/conn/conn_state.h"
#include "gatling/http2/http2.h"

#define NEVER_MS INT64_C(3153600000000) /* a hundred years, for a timeout that is switched off */

static int64_t milliseconds(int seconds) { return seconds ? (int64_t)seconds * 1000 : NEVER_MS; }

/* While a session reads a header block or has no stream, its deadline is that of HTTP/1.1. Otherwise a new one is set
 * with each complete request and with output. */
static int64_t http2_timeout_ms(const struct conn *c) {
	const struct conn_options *o = c->context->options;
	if (http2_end_announced(c->http2)) return HTTP2_DRAIN_MS;
	if (!c->frames_wait && http2_in_block(c->http2)) return milliseconds(o->head_timeout_s);
	if (!c->frames_wait && http2_idle(c->http2)) return milliseconds(o->keepalive_timeout_s);
	int64_t since_ns = c->frames_wait ? 0 : http2_waiting_since(c->http2);
	int64_t waited_ms = since_ns ? (io_now_ns(c->context->loop) - since_ns) / 1000000 : 0;
	if (!c->frames_wait && !since_ns && http2_waits_only_for_upstreams(c->http2))
		return c->context->draining && http2_has_tunnels(c->http2) ? CONN_TUNNEL_LAST_MS : NEVER_MS;

	return milliseconds(o->timeout_s) - waited_ms;
}

static int64_t linger_ms(const struct conn *c) {
	return c->context->draining == DRAIN_IDLE ? CONN_LINGER_LAST_MS : CONN_LINGER_MS;
}

static int64_t pass_timeout_ms(const struct conn *c) {
	if (conn_relay_waits_for_client(c)) return milliseconds(c->context->options->timeout_s);
	if (c->input_ended) return CONN_GONE_MS;
	return c->context->draining && conn_relay_is_tunnel(c) ? CONN_TUNNEL_LAST_MS : NEVER_MS;
}

static int64_t timeout_ms(const struct conn *c) {
	const struct conn_options *o = c->context->options;
	switch ((enum conn_state)c->state) {
	case CONN_PROXY:
	case CONN_HANDSHAKE:
	case CONN_HEAD: return milliseconds(o->head_timeout_s);
	case CONN_IDLE: return milliseconds(o->keepalive_timeout_s);
	case CONN_CONTINUE:
	case CONN_BODY:
	case CONN_JOB:
	case CONN_WRITE: return milliseconds(o->timeout_s);
	case CONN_PASS: return pass_timeout_ms(c);
	case CONN_HTTP2: return http2_timeout_ms(c);
	case CONN_LINGER: return linger_ms(c);
	case CONN_CLOSED: break;
	}
	return NEVER_MS;
}

static void set_timer(struct conn *c) {
	c->since_ms = io_now(c->context->loop);
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
	int64_t now_ns = io_now_ns(c->context->loop), timeout_ns = milliseconds(c->context->options->timeout_s) * 1000000;
	if (c->state == CONN_HTTP2) return http2_give_up_waiting(c->http2, now_ns - timeout_ns);
	if (c->state == CONN_JOB) exchange_give_up(c->exchange);
	return c->state == CONN_JOB;
}

/* Returns whether requests wait for upstreams. Silent tunnels do not count while the worker ends. */
static bool has_passes(const struct conn *c) {
	return http2_waits_only_for_upstreams(c->http2) && !(c->context->draining && http2_has_tunnels(c->http2));
}

static bool waits_for_socket(const struct conn *c) {
	return c->state == CONN_WRITE || c->state == CONN_CONTINUE || (c->state == CONN_PASS && c->outgoing);
}

bool conn_extend_deadline(struct conn *c) {
	bool acknowledged = has_acknowledged(c), extended = false;
	if (c->state == CONN_LINGER) extended = still_lingers(c, acknowledged);
	else if (waits_for_socket(c) || (c->state == CONN_HTTP2 && c->frames_wait))
		extended = acknowledged || io_reading(c->context->loop, c->fd);
	else if (c->state == CONN_HTTP2)
		extended = (acknowledged && c->unacknowledged > 0) || http2_waiting_since(c->http2) || has_passes(c);
	if (extended) set_timer(c);
	return extended;
}
