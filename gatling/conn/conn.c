/* conn.c - see conn.h: the life of a connection, its bytes, through TLS if need be, and what the loop reports of it. */
#include "gatling/conn/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/platform.h"
#include "gatling/conn/budget.h"
#include "gatling/conn/conn_state.h"
#include "gatling/http2/http2.h"

struct conn *conn_new(struct conn_context *w, int fd, unsigned port, bool secure, const struct sockaddr *peer) {
	struct conn *c = calloc(1, sizeof *c);
	if (!c || io_fd(w->loop, fd, c) == -1) {
		free(c);
		close(fd);
		return NULL;
	}
	c->kind = COOKIE_CONNECTION;
	c->fd = fd;
	c->context = w;
	c->port = (uint16_t)port;
	c->peer = peer_of(peer);
	c->state = secure ? CONN_HANDSHAKE : CONN_READ;
	c->awaited = CONN_AWAIT_NOTHING;
	w->connections++;
	return c;
}

/* --- the bytes --- */

ssize_t conn_receive(struct conn_context *w, struct conn *c, char *buffer, size_t length) {
	return c->tls ? tls_read(c->tls, buffer, length) : io_tryread(w->loop, c->fd, buffer, length);
}

enum iob_result conn_transmit(struct conn_context *w, struct conn *c, iob *batch, uint64_t most, enum io_rest rest,
							  uint64_t *sent) {
	return c->tls ? tls_send(c->tls, batch, most, rest, sent) : iob_send(w->loop, c->fd, batch, most, rest, sent);
}

uint64_t conn_share(const struct conn_context *w, const struct conn *c) {
	return c->state == CONN_WRITE ? w->share : CONN_SHARE_MOST;
}

bool conn_keep_input(struct conn *c, const char *data, size_t length) {
	c->input = length ? malloc(length) : NULL;
	c->input_length = c->input ? (uint32_t)length : 0;
	if (c->input) memcpy(c->input, data, length);
	return c->input || !length;
}

size_t conn_fetch_input(struct conn_context *w, struct conn *c) {
	size_t length = c->input_length;
	if (!length) return 0;
	memcpy(w->scratch, c->input, length);
	free(c->input);
	c->input = NULL;
	c->input_length = 0;
	return length;
}

/* --- the end --- */

void conn_close(struct conn_context *w, struct conn *c) {
	if (c->responses) {
		response_batch_log(&w->batches, c->responses);
		response_batch_return(&w->batches, c->responses);
	}
	if (c->tls) tls_close(c->tls);
	tls_free(c->tls);
	http2_free(c->http2);
	conn_http1_stop_waiting(c);
	free(c->input);
	io_close(w->loop, c->fd);
	w->memory -= c->memory;
	free(c);
	w->connections--;
}

struct conn *conn_of(const struct conn_context *w, int fd) {
	void *cookie = io_cookie(w->loop, fd);
	return cookie && *(enum cookie_kind *)cookie == COOKIE_CONNECTION ? cookie : NULL;
}

bool conn_idle(const struct conn *c) {
	if (c->state != CONN_READ || c->awaited != CONN_AWAIT_REQUEST) return false;
	return c->http2 ? http2_idle(c->http2) : !c->input_length;
}

/* A client of HTTP/2 that is still reading may send a frame, which after close(2) would reset the connection. */
bool conn_can_close_idle(const struct conn *c) { return !c->http2 || platform_send_queue(c->fd) <= 0; }

bool conn_unfinished(const struct conn *c) {
	if (c->state == CONN_HANDSHAKE) return c->awaited == CONN_AWAIT_HANDSHAKE;
	return c->state == CONN_READ && (c->http2 ? http2_in_block(c->http2) : c->awaited == CONN_AWAIT_HEAD);
}

int64_t conn_since(const struct conn *c) { return c->since_ms; }

/* --- what it keeps --- */

static size_t memory(const struct conn *c) {
	size_t n = c->input_length;
	if (c->responses) n += response_batch_memory(c->responses);
	if (c->tls) n += tls_memory(c->tls);
	if (c->http2) n += http2_memory(c->http2);
	return n;
}

size_t conn_memory(const struct conn *c) { return c->memory; }

void conn_close_over_budget(struct conn_context *w, struct conn *c) {
	if (c->http2 && c->state != CONN_LINGER) conn_http2_send_goaway(w, c, true);
	conn_close(w, c);
}

void conn_update_memory(struct conn_context *w, struct conn *c) {
	size_t now = memory(c);
	if (now == c->memory) return; /* as ever while nothing is kept */
	w->memory += now - c->memory;
	c->memory = (uint32_t)now;
	if (now > BUDGET_CONNECTION) conn_close_over_budget(w, c);
}

bool conn_close_idle(struct conn_context *w, struct conn *c) {
	if (!conn_can_close_idle(c)) return false;
	size_t kept = conn_fetch_input(w, c); /* part of a frame */
	ssize_t n = conn_receive(w, c, w->scratch + kept, CONN_SCRATCH - kept);
	if (n > 0) {
		if (c->http2) conn_http2_run(w, c, w->scratch, kept + (size_t)n);
		else conn_http1_run(w, c, w->scratch, kept + (size_t)n);
		return false;
	}
	if (c->http2) conn_http2_send_goaway(w, c, false);
	conn_close(w, c);
	return true;
}

void conn_drain(struct conn_context *w, struct conn *c) {
	if (c->http2 && c->state != CONN_LINGER) conn_http2_drain(w, c);
	else if (conn_idle(c)) (void)conn_close_idle(w, c);
}

static int64_t milliseconds(int seconds) { return seconds ? (int64_t)seconds * 1000 : CONN_NEVER_MS; }

static int64_t timeout_ms(const struct conn_context *w, const struct conn *c) {
	const struct conn_options *o = w->options;
	if (c->http2 && c->state != CONN_LINGER && http2_end_announced(c->http2)) return HTTP2_DRAIN_MS;
	if (conn_unfinished(c)) return milliseconds(o->head_timeout_s);
	return milliseconds(conn_idle(c) ? o->keepalive_timeout_s : o->timeout_s);
}

void conn_set_timeout(struct conn_context *w, struct conn *c) {
	c->since_ms = io_now(w->loop);
	io_timeout(w->loop, c->fd, c->since_ms + timeout_ms(w, c));
}

/* Closing with input that has not been read would reset the connection, and the last response would be lost. */
void conn_end(struct conn_context *w, struct conn *c) {
	if (c->tls) tls_close(c->tls);
	/* shutdown(2) also without lingering: after close(2) alone, input that was not read would reset the connection, and
	 * the response that waits for the FIN would be lost */
	if (shutdown(c->fd, SHUT_WR) == -1 || !c->linger) {
		conn_close(w, c);
		return;
	}
	c->state = CONN_LINGER;
	c->lingered = c->stalled_ms = 0;
	c->unread = INT32_MAX;
	io_dontwantwrite(w->loop, c->fd);
	io_timeout(w->loop, c->fd, io_now(w->loop) + CONN_LINGER_MS);
	if (io_wantread(w->loop, c->fd) == -1) conn_close(w, c);
	else conn_update_memory(w, c);
}

static void linger(struct conn_context *w, struct conn *c) {
	ssize_t n = io_tryread(w->loop, c->fd, w->scratch, CONN_SCRATCH);
	if (n > 0) c->lingered += (uint32_t)n;
	if (n == 0 || (n == -1 && errno != EAGAIN) || c->lingered > CONN_LINGER_BYTES) conn_close(w, c);
}

/* --- TLS --- */

/* Goes on with the handshake, and then with the requests that have come behind it. */
static void continue_handshake(struct conn_context *w, struct conn *c) {
	size_t length = 0;
	if (!c->tls && !(c->tls = tls_new(w->tls, w->loop, c->fd))) {
		conn_close(w, c);
		return;
	}
	if (c->awaited != CONN_AWAIT_HANDSHAKE) {
		c->awaited = CONN_AWAIT_HANDSHAKE;
		conn_set_timeout(w, c);
	}
	/* when others have used up this turn, this one comes first in the next */
	enum tls_result result = w->handshakes < TLS_HANDSHAKES ? tls_handshake(c->tls, w->scratch, &length) : TLS_AGAIN;
	w->handshakes++;
	switch (result) {
	case TLS_DONE:
		c->state = CONN_READ;
		if (tls_chose_http2(c->tls) &&
			!(c->http2 = http2_new(&w->http2, &http2_connection, c, c->fd, &c->peer, c->port, true)))
			conn_close(w, c);
		else conn_readable(w, c);
		return;
	case TLS_FAILED: /* the client may still be sending, and shall read the alert */
		c->linger = true;
		conn_end(w, c);
		return;
	case TLS_CLEAR:
		tls_free(c->tls);
		c->tls = NULL;
		c->state = CONN_READ;
		conn_http1_refuse_clear(w, c);
		return;
	case TLS_AGAIN: break;
	}
	bool writes = tls_blocked(c->tls);
	if (writes) io_dontwantread(w->loop, c->fd);
	else io_dontwantwrite(w->loop, c->fd);
	if ((writes ? io_wantwrite(w->loop, c->fd) : io_wantread(w->loop, c->fd)) == -1) conn_close(w, c);
	else conn_update_memory(w, c);
}

/* --- what the loop reports --- */

void conn_readable(struct conn_context *w, struct conn *c) {
	if (c->state == CONN_LINGER) {
		linger(w, c);
		return;
	}
	if (c->state == CONN_HANDSHAKE) {
		continue_handshake(w, c);
		return;
	}
	size_t kept = conn_fetch_input(w, c);
	ssize_t n = conn_receive(w, c, w->scratch + kept, CONN_SCRATCH - kept);
	if (n == 0 && c->http2) {
		conn_http2_input_ended(w, c);
		return;
	}
	if (n == 0 || (n == -1 && errno != EAGAIN)) {
		conn_close(w, c);
		return;
	}
	size_t length = kept + (n > 0 ? (size_t)n : 0);
	if (c->http2) conn_http2_run(w, c, w->scratch, length);
	else conn_http1_receive(w, c, kept, length);
}

void conn_writable(struct conn_context *w, struct conn *c) {
	if (c->state == CONN_HANDSHAKE) continue_handshake(w, c);
	else if (c->http2) conn_http2_writable(w, c);
	else conn_http1_writable(w, c);
}

/* Returns whether the client has acknowledged anything since the last look. The loop cannot tell: a socket becomes
 * writable only when much of it is free, which with a slow reader takes longer than the timeout. */
static bool has_acknowledged(struct conn *c) {
	long unread = platform_send_queue(c->fd);
	bool reads = unread != -1 && unread < c->unread;
	c->unread = (int32_t)unread;
	return reads;
}

/* Closes a lingering connection if everything is acknowledged, or if nothing has been for timeout_s, rounded up to
 * whole looks. */
static void continue_lingering(struct conn_context *w, struct conn *c, bool reads) {
	c->stalled_ms = reads ? 0 : c->stalled_ms + CONN_LINGER_MS;
	bool waits = c->unread > 0 && c->stalled_ms < milliseconds(w->options->timeout_s);
	if (waits) io_timeout(w->loop, c->fd, io_now(w->loop) + CONN_LINGER_MS);
	else conn_close(w, c);
}

void conn_timed_out(struct conn_context *w, struct conn *c) {
	bool reads = has_acknowledged(c), sent_all = c->unread <= 0;
	if (c->state == CONN_LINGER) {
		continue_lingering(w, c, reads);
	} else if (c->http2 && http2_end_announced(c->http2)) {
		conn_http2_finish(w, c);
	} else if ((c->state == CONN_WRITE && (reads || io_reading(w->loop, c->fd))) ||
			   (c->state == CONN_READ && c->http2 && ((reads && !sent_all) || http2_waits(c->http2)))) {
		conn_set_timeout(w, c);
	} else if (c->http2) {
		conn_http2_send_goaway(w, c, false);
		conn_close(w, c);
	} else {
		conn_http1_timed_out(w, c);
	}
}
