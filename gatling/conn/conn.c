/* conn.c - see conn.h: the life of a connection. step() calls the function of its state, and go() moves it from state
 * to state. */
#include "gatling/conn/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/conn/conn_relay.h"
#include "gatling/conn/refuse.h"
#include "gatling/http2/http2.h"

struct conn *conn_new(struct conn_context *w, int fd, unsigned port, bool secure, bool proxied,
					  const struct peer *peer) {
	struct conn *c = calloc(1, sizeof *c);
	if (!c || io_fd(w->loop, fd, c) == -1) {
		free(c);
		limits_return_connection(w->exchanges.limits, conn_owner(w, peer));
		close(fd);
		return NULL;
	}
	c->kind = COOKIE_CONNECTION;
	c->fd = fd;
	c->context = w;
	c->port = (uint16_t)port;
	c->peer = *peer;
	c->forwarding = forwarding_of(&w->options->trust, peer);
	c->secure = secure;
	c->unsent_halved = w->unsent_varies ? CONN_UNSENT_UNKNOWN : 0;
	c->state = proxied ? CONN_PROXY : secure ? CONN_HANDSHAKE : CONN_IDLE;
	__atomic_store_n(&w->connections, w->connections + 1, __ATOMIC_RELAXED);
	count_one(COUNT_ACCEPTED);
	c->counted = c->state;
	count_one(GAUGE_CONNECTIONS_PROXY + c->counted); /* that is the gauge of the first state */
	return c;
}

void conn_close(struct conn_context *w, struct conn *c) {
	if (c->outgoing) response_batch_end(&w->batches, &c->outgoing);
	if (c->tls) tls_close(c->tls);
	limits_return_requests(w->exchanges.limits, &c->peer, c->requests);
	limits_return_connection(w->exchanges.limits, conn_peer(c));
	tls_release(c->tls);
	http2_free(c->http2);
	conn_end_exchange(c);
	free(c->input);
	rate_windows_forget(&w->rate, CONN_TCP, c->fd);
	kernel_windows_forget(&w->kernel, c->fd);
	conn_forget_end(c);
	io_close(w->loop, c->fd);
	w->memory -= c->memory;
	uncount_one(GAUGE_CONNECTIONS_PROXY + c->counted);
	free(c);
	__atomic_store_n(&w->connections, w->connections - 1, __ATOMIC_RELAXED);
}

struct conn *conn_of(const struct conn_context *w, int fd) {
	struct conn *c = io_cookie(w->loop, fd);
	return c && c->kind == COOKIE_CONNECTION ? c : NULL;
}

/* --- memory --- */

/* Returns how many bytes of input are kept. */
static size_t kept(const struct conn *c) { return c->input ? c->input->length : 0; }

static size_t memory(const struct conn *c) {
	size_t n = kept(c);
	if (c->exchange) n += conn_exchange_memory(c);
	if (c->outgoing) n += response_batch_memory(c->outgoing);
	if (c->tls) n += tls_memory(c->tls);
	if (c->http2) n += http2_memory(c->http2);
	return n;
}

size_t conn_context_memory(const struct conn_context *w) { return w->memory + w->tls_memory + w->quic_memory; }

void conn_close_over_budget(struct conn_context *w, struct conn *c) {
	count_one(COUNT_CLOSED_MEMORY);
	if (c->state == CONN_HTTP2) conn_http2_send_goaway(c, true);
	conn_close(w, c);
}

/* Updates the count of the memory that is kept for the connection, and closes it if that is over its budget. */
static void update_memory(struct conn_context *w, struct conn *c) {
	size_t now = memory(c);
	if (now == c->memory) return; /* as always while nothing is kept */
	w->memory += now - c->memory;
	c->memory = (uint32_t)now;
	if (now > (c->http2 ? w->http2.memory_max : BUDGET_CONNECTION)) conn_close_over_budget(w, c);
}

/* --- the states --- */

/* Until its header has come, a balancer's connection belongs to no client, as one of a unix socket does. */
static enum conn_state receive_proxy_header(struct conn *c, struct conn_run *run) {
	struct conn_context *w = c->context;
	struct proxy_header header;
	static notice_time next;
	int used;
	if (!conn_read_proxy_header(c, &header, &run->input, &used)) return CONN_CLOSED;
	if (used == -1 && notice_due(&next))
		notice_line(LEVEL_WARNING,
					"closed a connection from --proxy-protocol that does not begin with a PROXY header: does the "
					"balancer send it?");
	if (used <= 0) return used == 0 ? CONN_PROXY : CONN_CLOSED;
	run->input = slice_rest(run->input, (size_t)used);
	if (header.own && !conn_other_end(c, &header.client)) return CONN_CLOSED;
	int refusal = w->refusal(w, &header.client);
	if (refusal) {
		refuse_politely(w, c->fd, c->secure, refusal);
		return CONN_CLOSED;
	}
	c->peer = header.client;
	c->forwarding = forwarding_of(&w->options->trust, &c->peer);
	if (c->forwarding && !header.own && !conn_remember_end(c)) return CONN_CLOSED;
	w->served = peer_network(conn_peer(c));
	bool handshake_follows = c->secure;
	c->secure |= header.tls;
	return handshake_follows ? CONN_HANDSHAKE : CONN_IDLE;
}

static enum conn_state handshake(struct conn *c, struct conn_run *run) {
	struct conn_context *w = c->context;
	size_t length = 0;
	if (!c->tls && !(c->tls = tls_new(w->tls, w->loop, c->fd))) return CONN_CLOSED;
	/* if other handshakes have used up this turn, this one comes first in the next */
	enum tls_result result = w->handshakes < TLS_HANDSHAKES ? tls_handshake(c->tls, w->scratch, &length) : TLS_AGAIN;
	w->handshakes++;
	switch (result) {
	case TLS_AGAIN: return CONN_HANDSHAKE;
	case TLS_FAILED:
		count_one(COUNT_TLS_FAILED);
		return conn_end(c, true); /* the client may still be sending, and should read the alert */
	case TLS_CLEAR:
		tls_release(c->tls);
		c->tls = NULL;
		return conn_http1_refuse_clear(c, run);
	case TLS_DONE: break;
	}
	count_one(tls_resumed(c->tls) ? COUNT_TLS_RESUMED : COUNT_TLS_FULL);
	if (!conn_read(c, &run->input)) return CONN_CLOSED;
	return tls_chose_http2(c->tls) ? CONN_HTTP2 : CONN_IDLE;
}

static void resume(void *conn);

static void close_connection(void *conn) {
	struct conn *c = conn;
	conn_close(c->context, c);
}

static enum conn_state run_frames(struct conn *c, struct conn_run *run) {
	static const struct streams_connection functions = {.send = resume, .close = close_connection};
	if (!c->http2)
		c->http2 =
			http2_new(&c->context->http2, &functions, c, &c->peer, (enum forwarding)c->forwarding, c->port, c->secure);
	return c->http2 ? conn_http2_run(c, run) : CONN_CLOSED;
}

static enum conn_state wait_for_job(struct conn *c, struct conn_run *run) {
	c->exchange->ready = resume;
	return conn_http1_job(c, run);
}

static enum conn_state pass(struct conn *c, struct conn_run *run) {
	c->exchange->ready = resume;
	return conn_http1_pass(c, run);
}

static enum conn_state linger(struct conn *c, struct conn_run *run) {
	c->linger.bytes += (uint32_t)run->input.length;
	run->input.length = 0;
	return c->linger.bytes > CONN_LINGER_BYTES ? CONN_CLOSED : CONN_LINGER;
}

/* Calls the function of the state. Returns the next state, or the same one if it has to wait. */
static enum conn_state step(struct conn *c, struct conn_run *run) {
	switch ((enum conn_state)c->state) {
	case CONN_PROXY: return receive_proxy_header(c, run);
	case CONN_HANDSHAKE: return handshake(c, run);
	case CONN_IDLE:
	case CONN_HEAD: return conn_http1_head(c, run);
	case CONN_CONTINUE: return conn_http1_continue(c);
	case CONN_BODY: return conn_http1_body(c, run);
	case CONN_JOB: return wait_for_job(c, run);
	case CONN_PASS: return pass(c, run);
	case CONN_WRITE: return conn_http1_write(c, run);
	case CONN_HTTP2: return run_frames(c, run);
	case CONN_LINGER: return linger(c, run);
	case CONN_CLOSED: break;
	}
	return CONN_CLOSED;
}

/* --- waiting --- */

/* Returns whether TLS has something to send by itself. */
static bool is_blocked(const struct conn *c) { return c->tls && tls_blocked(c->tls); }

static bool wants_input(const struct conn *c) {
	switch ((enum conn_state)c->state) {
	case CONN_HANDSHAKE: return !is_blocked(c);
	case CONN_PROXY:
	case CONN_IDLE:
	case CONN_HEAD:
	case CONN_BODY:
	case CONN_LINGER: return true;
	/* after the content of its request, the client may send another request, end its side, or go away */
	case CONN_PASS: return !c->input && !c->input_ended;
	case CONN_HTTP2: return !c->input_ended && !(c->frames_wait && c->ending);
	case CONN_CONTINUE:
	case CONN_JOB:
	case CONN_WRITE:
	case CONN_CLOSED: break;
	}
	return false;
}

static bool output_waits(const struct conn *c) {
	if (c->state == CONN_PASS) return c->outgoing; /* there is one only while there is something to send */
	return c->state == CONN_WRITE || c->state == CONN_CONTINUE || (c->state == CONN_HTTP2 && c->frames_wait);
}

/* Bytes that TLS has to send by itself are sent in any state. */
static bool wants_output(const struct conn *c) { return output_waits(c) || (c->state != CONN_LINGER && is_blocked(c)); }

/* Returns whether HTTP/1.1 requests are read. */
static bool reads_requests(const struct conn *c) {
	return c->state == CONN_IDLE || c->state == CONN_HEAD || c->state == CONN_BODY;
}

/* Handles the end of the client's side. Returns whether it still gets an answer. */
static bool end_input(struct conn *c, struct conn_run *run) {
	if (c->state != CONN_PASS || !conn_relay_has_request(c)) return false;
	run->progress |= !c->ending;
	c->input_ended = true;
	if (!c->ending) c->ending = CONN_ENDING_CLOSE;
	return true;
}

/* Ends a run: closes the connection, or keeps its input, and waits for the events that its state needs. */
static void wait_or_close(struct conn_context *w, struct conn *c, struct conn_run *run) {
	bool reads = reads_requests(c) || c->state == CONN_PASS;
	bool closed = c->state == CONN_CLOSED || (reads && c->tls && tls_ended(c->tls) && !end_input(c, run));
	if (!closed && c->tls) closed = tls_send_held(c->tls) == IOB_FAILED;
	if (closed || (run->input.length && !conn_keep_input(c, run->input))) {
		conn_close(w, c);
		return;
	}
	if (run->progress) conn_set_deadline(c);
	if (c->counted != c->state) {
		gauge_move(GAUGE_CONNECTIONS_PROXY + c->counted, GAUGE_CONNECTIONS_PROXY + c->state);
		c->counted = c->state;
	}
	if (io_want(w->loop, c->fd, wants_input(c), wants_output(c)) == -1) conn_close(w, c);
	else update_memory(w, c);
}

/* With DRAIN_IDLE: a request that has already come is answered before the connection ends. */
static bool has_last_request(struct conn *c, struct conn_run *run) {
	if (conn_read(c, &run->input) && run->input.length) return true;
	c->state = CONN_CLOSED;
	return false;
}

/* Goes from state to state until the connection has to wait, or ends. */
static void go(struct conn_context *w, struct conn *c, struct conn_run *run) {
	enum conn_state before;
	run->progress |= !c->since_ms;
	run->resumed = output_waits(c);
	do {
		before = (enum conn_state)c->state;
		if (c->input && !run->input.length && (reads_requests(c) || c->state == CONN_PASS)) {
			run->input = conn_fetch_input(c);
			run->known = 0;
		}
		c->state = (uint8_t)step(c, run);
		run->progress |= c->state != before;
	} while (c->state != before || (c->state == CONN_IDLE && w->draining == DRAIN_IDLE && has_last_request(c, run)));
	wait_or_close(w, c, run);
}

/* Continues a connection for another reason than an event of its socket. */
static void resume(void *conn) {
	struct conn *c = conn;
	struct conn_run run = {.progress = false};
	go(c->context, c, &run);
}

/* --- events --- */

void conn_wait(struct conn_context *w, struct conn *c) {
	if (io_wantread(w->loop, c->fd) == -1) conn_close(w, c);
}

void conn_readable(struct conn_context *w, struct conn *c) {
	struct conn_run run = {.known = c->state == CONN_HEAD ? kept(c) : 0};
	const bool splices = c->state == CONN_PASS && conn_relay_splices(c);
	if (c->state <= CONN_HANDSHAKE || (splices ? conn_relay_splice(c, &run) : conn_read(c, &run.input)) ||
		(c->input_ended && end_input(c, &run)))
		go(w, c, &run);
	else conn_close(w, c);
}

void conn_writable(struct conn_context *w, struct conn *c) {
	if (!reads_requests(c) && c->state != CONN_JOB && (c->state != CONN_PASS || c->outgoing)) {
		resume(c);
		return;
	}
	enum iob_result sent = tls_flush(c->tls);
	if (sent == IOB_FAILED) conn_close(w, c);
	else if (sent == IOB_DONE) io_dontwantwrite(w->loop, c->fd);
}

/* Counts a connection that is past its deadline, except a lingering one, which has had its response, one whose client
 * is gone, and those that are closed because the worker ends. */
static void count_timeout(const struct conn *c, enum wait_for what) {
	if (what == WAIT_LINGER || what == WAIT_UPSTREAM || what == WAIT_TUNNEL || c->context->draining) return;
	count_one(what == WAIT_REQUEST ? COUNT_CLOSED_KEEPALIVE
			  : what == WAIT_HEAD  ? COUNT_CLOSED_LATE
								   : COUNT_CLOSED_STALLED);
}

/* Returns whether it waits for the rest of a request of HTTP/1.1 that can still be refused. */
static bool lacks_http1_request(const struct conn *c, enum wait_for what) {
	if (c->state == CONN_PASS) return what == WAIT_CLIENT_SENDS && !c->exchange->status;
	return c->state == CONN_HEAD || c->state == CONN_BODY;
}

void conn_timed_out(struct conn_context *w, struct conn *c) {
	const struct waiting wait = conn_waits(c);
	struct conn_run run = {.drained = wait.what == WAIT_DRAIN};
	if (lacks_http1_request(c, wait.what)) {
		count_timeout(c, wait.what);
		c->state = (uint8_t)conn_http1_refuse_late(c, &run);
		run.progress = true;
		go(w, c, &run);
	} else if (wait.what == WAIT_DRAIN) {
		go(w, c, &run);
	} else if (wait.what == WAIT_JOB && conn_give_up_waiting(c)) {
		run.progress = true;
		go(w, c, &run);
	} else if (!conn_extend_deadline(c, wait.what)) {
		count_timeout(c, wait.what);
		if (c->state == CONN_HTTP2) conn_http2_send_goaway(c, false);
		conn_close(w, c);
	}
}

/* --- making room, and the end of the worker --- */

const struct peer *conn_peer(const struct conn *c) { return c->forwarding ? &peer_unknown : &c->peer; }

/* An HTTP/2 client that is still reading may send a frame, which after close(2) would reset the connection. */
bool conn_can_close_idle(const struct conn *c) { return !c->http2 || platform_send_queue(c->fd) <= 0; }

int64_t conn_since(const struct conn *c) { return c->since_ms; }

bool conn_close_idle(struct conn_context *w, struct conn *c) {
	struct conn_run run = {0};
	const size_t before = kept(c); /* part of a frame */
	if (!conn_can_close_idle(c)) return false;
	if (conn_read(c, &run.input) && run.input.length > before) {
		go(w, c, &run);
		return false;
	}
	if (c->http2) conn_http2_send_goaway(c, false);
	conn_close(w, c);
	return true;
}

void conn_drain(struct conn_context *w, struct conn *c) {
	if (c->state == CONN_HTTP2) resume(c); /* announces the end */
	else if (c->state == CONN_PASS && c->exchange->tunnel) conn_set_deadline(c);
	else if (w->draining == DRAIN_IDLE && conn_is_idle(c)) (void)conn_close_idle(w, c);
	else if (w->draining == DRAIN_IDLE && c->state == CONN_LINGER) conn_timed_out(w, c); /* tests it sooner */
}
