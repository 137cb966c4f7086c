/* conn_http1.c - the functions of the states of HTTP/1.1. conn_http1_head() turns bytes into responses,
 * conn_http1_write() sends them. */
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/conn/conn_relay.h"
#include "gatling/http2/http2.h"

static const struct slice continue_line = SLICE("HTTP/1.1 100 Continue\r\n\r\n");

/* --- clients --- */

/* Gives back the requests that limits_take_request() has counted, except `left` of them. */
static void return_requests(struct conn *c, uint8_t left) {
	if (c->requests == left) return;
	limits_return_requests(c->context->exchanges.limits, &c->peer, c->requests - left);
	c->requests = left;
}

/* Sets c->peer to the client of a request that a trusted proxy has passed on, or to the proxy if request is NULL or
 * names no client. Proxies do not pipeline requests of several clients, so those under way for the last client count as
 * answered. */
static void find_client(struct conn *c, const struct request *request) {
	const struct trusted_proxies *trust = &c->context->options->trust;
	struct peer client;
	if ((!request || !forwarded_client(trust, (enum forwarding)c->forwarding, request, &client)) &&
		!conn_other_end(c, &client))
		client = peer_unknown; /* it is gone */
	if (memcmp(&client, &c->peer, sizeof client) == 0) return;
	return_requests(c, 0);
	c->peer = client;
}

/* Writes the local address of the connection, for a request without Host (HTTP/1.0), to text (PEER_HOST_MAX bytes).
 * Returns it, or an absent slice. */
static struct slice local_host(const struct conn *c, char *text) {
	struct peer self;
	return peer_local(c->fd, &self) ? (struct slice){.at = text, .length = peer_format_host(text, &self)}
									: (struct slice){0};
}

/* Names the host of a request without one. text: as above. */
static void name_host(const struct conn *c, struct exchange *x, char *text) {
	const struct site_context *site = &c->context->site;
	if (!x->request->host.at && (site->options->vhosts != VHOSTS_OFF || site->https_port))
		x->arrival.host = local_host(c, text);
}

static struct arrival arrival_of(const struct conn *c) {
	return (struct arrival){.client = &c->peer,
							.forwarding = (enum forwarding)c->forwarding,
							.port = c->port,
							.secure = c->secure,
							.copied = c->tls && !tls_in_kernel(c->tls),
							.may_wait = true};
}

/* Begins the exchange of a request. NULL: it is not known. */
static void begin_exchange(struct conn *c, struct exchange *x, const struct request *q) {
	exchange_clear(x);
	x->context = &c->context->exchanges;
	x->carrier = &conn_carrier;
	x->carried = c;
	x->request = q;
	x->arrival = arrival_of(c);
	x->started_ns = c->outgoing ? c->outgoing->started_ns : c->context->site.now_ns;
	x->counted = c->admitted;
	x->rated = c->rated;
}

/* Sets *proxy and the arrival's proxy, which an upstream is told of. */
static void find_proxy(const struct conn *c, struct exchange *x, struct peer *proxy) {
	if (!c->forwarding) return;
	if (!conn_other_end(c, proxy)) *proxy = peer_unknown; /* it is gone */
	x->arrival.proxy = proxy;
}

/* --- responses --- */

/* Appends a response to those under way. Returns false if memory runs out; then they cannot be sent. */
static bool respond(struct conn *c, struct exchange *x, struct response *r, bool head_only,
					enum persistence persistence) {
	const struct response_lines lines = {c->context->common_fields[c->secure], http1_persistence[persistence]};
	uint64_t bytes;
	if (persistence == PERSIST_NOT && c->ending == CONN_ENDING_NONE) c->ending = CONN_ENDING_CLOSE;
	if (!response_batch_take(&c->context->batches, BATCH_LARGE, &c->outgoing)) {
		response_drop(r);
		return false;
	}
	c->outgoing->files += r->representation && r->representation->fd != -1;
	if (!response_write(c->outgoing->iob, r, lines, head_only, &bytes)) return false;
	if (!c->outgoing->responses++) c->outgoing->sampled = (uint8_t)counters_sample();
	exchange_note(x, c->outgoing, r->status, r->user, bytes);
	return true;
}

/* Refuses a request that is malformed or too late, and reads nothing more. Drops a response that waits for the body of
 * its request. x: NULL if nothing is known of the request. */
static enum conn_state refuse(struct conn *c, struct conn_run *run, struct exchange *x, struct response *r,
							  bool head_only) {
	if (!response_batch_take(&c->context->batches, BATCH_LARGE, &c->outgoing)) {
		response_drop(r);
		return CONN_CLOSED;
	}
	if (c->forwarding && c->state <= CONN_HEAD) find_client(c, NULL); /* what is known of a head may be forged */
	if (body_pending(&c->body)) response_batch_reset(&c->context->batches, c->outgoing);
	c->body = (struct body){0};
	c->ending = CONN_ENDING_LINGER;
	run->input.length = 0;
	struct exchange unknown;
	if (!x) begin_exchange(c, &unknown, NULL);
	return respond(c, x ? x : &unknown, r, head_only, PERSIST_NOT) ? CONN_WRITE : CONN_CLOSED;
}

static enum conn_state refuse_status(struct conn *c, struct conn_run *run, struct exchange *x, int status,
									 bool head_only) {
	struct response r;
	response_status(&r, status);
	return refuse(c, run, x, &r, head_only);
}

/* Refuses the request that is passed on, without a response so far. */
static enum conn_state refuse_passed(struct conn *c, struct conn_run *run, int status) {
	const enum conn_state next = refuse_status(c, run, c->exchange, status, false);
	conn_end_exchange(c);
	return next;
}

enum conn_state conn_http1_refuse_late(struct conn *c, struct conn_run *run) {
	(void)conn_fetch_input(c); /* the part of the request that has come is dropped */
	if (c->exchange) return refuse_passed(c, run, 408);
	if (!response_batch_take(&c->context->batches, BATCH_LARGE, &c->outgoing)) return CONN_CLOSED;
	if (c->state == CONN_HEAD) c->outgoing->started_ns = c->since_ms * 1000000; /* the log says how long it took */
	return refuse_status(c, run, NULL, 408, c->state == CONN_BODY && c->head);
}

enum conn_state conn_http1_refuse_clear(struct conn *c, struct conn_run *run) {
	struct response r;
	response_status(&r, 400);
	r.page = SLICE(RESPONSE_PAGE("400 Bad Request", "This port speaks HTTPS",
								 "<p>It was asked over plain HTTP: the address has to begin with https://\n"));
	return refuse(c, run, NULL, &r, false);
}

/* --- requests --- */

/* Returns whether the connection persists after the response to a request. */
static enum persistence persistence_of(struct conn *c, const struct request *q) {
	bool draining = c->context->draining;
	/* the client does not know that the connection ends, and may have sent more */
	if (q->keep_alive && draining) c->ending = CONN_ENDING_LINGER;
	if (!q->keep_alive || draining || c->input_ended) return PERSIST_NOT;
	return q->minor >= 1 ? PERSIST_SILENTLY : PERSIST_SAID;
}

/* Writes the response to a request. Returns the state in which its body is read, or CONN_IDLE if it has none. */
static enum conn_state respond_to(struct conn *c, struct conn_run *run, struct exchange *x, struct response *r) {
	const struct request *q = x->request;
	const bool head_only = q->method == METHOD_HEAD;
	enum persistence persistence = persistence_of(c, q);
	bool reads_body = q->framing != BODY_NONE;
	if (q->content_length > BODY_MAX || (x->failed && reads_body)) return refuse(c, run, x, r, head_only);
	c->head = head_only;
	/* a client that waits for a 100 and is refused may send the body or not: what comes next is ambiguous */
	if (q->expect_continue && r->status >= 400) {
		persistence = PERSIST_NOT;
		c->ending = CONN_ENDING_LINGER;
		reads_body = false;
	}
	if (!respond(c, x, r, head_only, persistence)) return CONN_CLOSED;
	if (!reads_body) return CONN_IDLE;
	body_start(&c->body, q);
	return q->expect_continue && !run->input.length && !c->input ? CONN_CONTINUE : CONN_BODY;
}

static enum conn_state begin_relay(struct conn *c) {
	conn_relay_begin(c, persistence_of(c, c->exchange->request));
	return CONN_PASS;
}

static bool is_full(const struct response_batch *x) {
	if (!x) return false;
	return x->responses >= CONN_PIPELINE_MAX || x->files >= CONN_PIPELINE_FILES ||
		   iob_bytesleft(x->iob) >= CONN_PIPELINE_BYTES || iob_parts(x->iob) >= IOB_PART_LIMIT / 4 ||
		   x->lines_length >= CONN_PIPELINE_BYTES;
}

/* Answers the request at the front of the input. Returns CONN_IDLE if another one may follow, or CONN_HEAD if it is not
 * complete. A request that has to wait is decided again after the responses before it. */
static enum conn_state take_request(struct conn *c, struct conn_run *run) {
	struct request q;
	struct response r;
	struct peer proxy;
	char host[PEER_HOST_MAX];
	int n = request_parse(&q, run->input.at, run->input.length);
	if (n == 0) return CONN_HEAD;
	if (n > 0 && c->forwarding) find_client(c, &q);
	struct exchange x;
	begin_exchange(c, &x, &q);
	if (n < 0) return refuse_status(c, run, &x, -n, q.method == METHOD_HEAD);
	/* the response to a request with a body waits for the body; those before it must not */
	if (q.framing != BODY_NONE && c->outgoing) return CONN_WRITE;
	name_host(c, &x, host);
	enum exchange_next next = exchange_begin(&x, &r);
	c->requests += x.counted && !c->admitted;
	c->admitted = x.counted;
	c->rated = x.rated;
	if (next != EXCHANGE_ANSWERED && c->outgoing) return CONN_WRITE;
	run->input = slice_rest(run->input, (size_t)n);
	c->begun = true;
	c->admitted = c->rated = false;
	if (next == EXCHANGE_ANSWERED) return respond_to(c, run, &x, &r);
	if (next == EXCHANGE_PASSED_ON) find_proxy(c, &x, &proxy);
	if (!conn_keep_exchange(c, &x, &r)) return CONN_CLOSED;
	return next == EXCHANGE_WAITS ? CONN_JOB : begin_relay(c);
}

/* Returns whether bytes that follow part of a head can be kept without parsing the head again: they do not end a line,
 * and its first line is complete. So a head is parsed once per line, not once per packet. */
static bool ends_no_line(struct slice input, size_t known) {
	if (known == input.length) return true;
	return input.length < HEAD_MAX && memchr(input.at, '\n', known) &&
		   !memchr(input.at + known, '\n', input.length - known) &&
		   request_plausible(input.at + known, input.length - known);
}

enum conn_state conn_http1_head(struct conn *c, struct conn_run *run) {
	enum conn_state next = CONN_IDLE;
	if (!run->input.length) return c->outgoing ? CONN_WRITE : CONN_IDLE;
	if (run->known && ends_no_line(run->input, run->known)) return CONN_HEAD;
	/* RFC 9113, sections 3.3 and 3.4: the preface is at the start of a connection; with TLS, ALPN decides */
	if (!c->begun && !c->tls && http2_begins(run->input.at, run->input.length)) return CONN_HTTP2;
	while (next == CONN_IDLE && run->input.length && !c->ending && !is_full(c->outgoing)) next = take_request(c, run);
	run->known = next == CONN_HEAD ? run->input.length : 0;
	return c->outgoing && (next == CONN_IDLE || next == CONN_HEAD) ? CONN_WRITE : next;
}

/* Answers the request that has waited. If it could not be passed on, the rest of its content is not read. */
enum conn_state conn_http1_job(struct conn *c, struct conn_run *run) {
	struct exchange *x = c->exchange;
	struct response r;
	struct peer proxy;
	char host[PEER_HOST_MAX];
	if (exchange_waits_for_job(x)) return CONN_JOB;
	x->arrival = arrival_of(c);
	name_host(c, x, host);
	find_proxy(c, x, &proxy);
	switch (exchange_again(x, &r)) {
	case EXCHANGE_WAITS: return CONN_JOB;
	case EXCHANGE_PASSED_ON: return begin_relay(c);
	case EXCHANGE_ANSWERED: break;
	}
	if (!response_batch_take(&c->context->batches, BATCH_LARGE, &c->outgoing)) {
		response_drop(&r);
		return CONN_CLOSED;
	}
	c->outgoing->started_ns = x->started_ns;
	const enum conn_state next = respond_to(c, run, x, &r);
	conn_end_exchange(c);
	return next;
}

enum conn_state conn_http1_pass(struct conn *c, struct conn_run *run) {
	bool malformed;
	switch (conn_relay(c, run, &malformed)) {
	case RELAY_WAITS: return CONN_PASS;
	case RELAY_FAILED: return conn_http1_job(c, run);
	case RELAY_BROKEN:
		if (malformed) return refuse_passed(c, run, 400);
		if (!c->exchange->tunnel) return CONN_CLOSED;
		break; /* what the upstream has said before is to arrive */
	case RELAY_DONE: break;
	}
	conn_end_exchange(c);
	return_requests(c, c->admitted);
	if (!c->ending) return CONN_IDLE;
	return conn_end(c, c->ending == CONN_ENDING_LINGER || run->input.length || c->input);
}

/* Sends a 100 (Continue). It has to wait if earlier responses, which have left, still fill the socket. */
enum conn_state conn_http1_continue(struct conn *c) {
	struct batch_pool *pool = &c->context->batches;
	struct response_batch *x = NULL;
	uint64_t sent = 0;
	if (!response_batch_take(pool, BATCH_SMALL, &x)) return CONN_CLOSED;
	enum iob_result result = iob_addbuf(x->iob, continue_line.at, continue_line.length, NULL, NULL) == 0
								 ? conn_transmit(c, x->iob, continue_line.length, IO_LAST, &sent)
								 : IOB_FAILED;
	response_batch_return(pool, &x);
	if (result == IOB_AGAIN && !sent) return CONN_CONTINUE;
	return sent == continue_line.length ? CONN_BODY : CONN_CLOSED;
}

/* Skips the body of a request. Its response is ready, and is sent after the body, with those to the requests behind
 * it. */
enum conn_state conn_http1_body(struct conn *c, struct conn_run *run) {
	while (run->input.length && body_pending(&c->body)) {
		int n = body_skip(&c->body, run->input.at, run->input.length);
		if (n < 0) return refuse_status(c, run, NULL, -n, c->head);
		run->input = slice_rest(run->input, (size_t)n);
	}
	return body_pending(&c->body) ? CONN_BODY : CONN_IDLE;
}

enum conn_state conn_http1_write(struct conn *c, struct conn_run *run) {
	struct conn_context *w = c->context;
	uint64_t sent = 0, most = run->resumed ? w->share : CONN_SHARE_MOST;
	enum iob_result result = conn_transmit(c, c->outgoing->iob, most, c->ending ? IO_MORE : IO_LAST, &sent);
	w->sent += sent;
	if (result == IOB_FAILED) return CONN_CLOSED;
	if (c->outgoing->sampled && sent) response_batch_time(c->outgoing, result == IOB_DONE);
	if (result == IOB_AGAIN) {
		run->progress |= sent > 0;
		return CONN_WRITE;
	}
	if (!run->resumed) w->at_once_ms = w->site.now_ms;
	response_batch_end(&w->batches, &c->outgoing);
	return_requests(c, c->admitted); /* one that is admitted has waited for these */
	if (!c->ending) return CONN_IDLE;
	return conn_end(c, c->ending == CONN_ENDING_LINGER || run->input.length || c->input);
}
