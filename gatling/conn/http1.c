/* http1.c - HTTP/1.1 on a connection. Bytes become requests and answers in consume(), and leave in send_responses();
 * conn_http1_run() goes round until the client or the socket has to be waited for. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/conn_state.h"
#include "gatling/conn/http1_response.h"
#include "gatling/http2/http2.h"

/* --- answers --- */

/* Appends a response to those under way. request is what is known of the request, or NULL. false: ENOMEM. */
static bool respond(struct conn_context *w, struct conn *c, struct response *r, bool head_only,
					enum persistence persistence, const struct request *request) {
	uint64_t bytes;
	if (persistence == PERSIST_NOT) c->closing = true;
	c->awaited = CONN_AWAIT_NOTHING;
	c->responses->files += r->representation && r->representation->fd != -1;
	if (http1_write(c->responses->batch, r, w->server_date[c->tls != NULL], head_only, persistence, &bytes) == -1)
		return false;
	c->responses->responses++;
	response_batch_note(&w->batches, c->responses, &c->peer, request, r->user, r->status, bytes);
	return true;
}

/* Answers what cannot be understood, or not waited for, and reads nothing more. An answer that waits for the body of
 * its request is void. */
static bool refuse(struct conn_context *w, struct conn *c, int status, bool head_only, const struct request *request) {
	struct response r;
	response_status(&r, status);
	if (body_pending(&c->body)) response_batch_reset(c->responses);
	c->body = (struct body){0};
	c->linger = true;
	return respond(w, c, &r, head_only, PERSIST_NOT, request);
}

/* Where a connection came in, for a request without Host (HTTP/1.0). */
static struct slice local_host(const struct conn *c, char *text) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	if (getsockname(c->fd, (struct sockaddr *)&address, &length) == -1) return (struct slice){0};
	struct peer self = peer_of((struct sockaddr *)&address);
	size_t n = peer_format(text + 1, &self);
	struct slice host = {.at = text + 1, .length = n};
	if (memchr(text + 1, ':', n)) { /* an IPv6 literal */
		text[0] = '[';
		text[n + 1] = ']';
		host = (struct slice){.at = text, .length = n + 2};
	}
	return address.ss_family != AF_UNIX && host_valid(host) ? host : (struct slice){0};
}

/* --- waiting for a job --- */

struct waiting_request {
	struct waiter waiter;
	struct conn_context *context;
	struct conn *conn;
	unsigned waits;
	int64_t started_ns; /* when it was read first */
};

void conn_http1_stop_waiting(struct conn *c) {
	if (c->waiting) waiter_leave(&c->waiting->waiter);
	free(c->waiting);
	c->waiting = NULL;
}

/* The job is finished: asks for the answer again. */
static void resume(struct waiter *waiter) {
	struct waiting_request *waiting = (struct waiting_request *)waiter;
	struct conn *c = waiting->conn;
	struct conn_context *w = c->context;
	c->state = CONN_READ;
	c->awaited = CONN_AWAIT_NOTHING;
	conn_http1_run(w, c, w->scratch, conn_fetch_input(w, c));
}

/* false: no memory. */
static bool wait_for_job(struct conn *c, struct job *job) {
	if (!c->waiting) {
		if (!(c->waiting = malloc(sizeof *c->waiting))) return false;
		*c->waiting =
			(struct waiting_request){.waiter = {.resume = resume}, .conn = c, .started_ns = c->responses->started_ns};
	}
	job_wait(job, &c->waiting->waiter);
	c->waiting->waits++;
	c->state = CONN_WAIT;
	return true;
}

/* --- requests --- */

/* 1: there is an answer; 0: there will be, when those before it are out and a job is done; -1: no memory. */
static int respond_to(struct conn_context *w, struct conn *c, const struct request *q) {
	char local_name[PEER_MAX + 2];
	struct connection_info arrival = {
		.peer = &c->peer, .port = c->port, .secure = c->tls, .patient = !c->waiting || c->waiting->waits < WAITS_MAX};
	struct response r;
	if (!q->host.at && (w->content.options->vhosts != VHOSTS_OFF || w->content.https_port))
		arrival.host = local_host(c, local_name);
	answer(&w->content, q, &arrival, &r);
	if (!r.status) return c->responses->responses || wait_for_job(c, r.job) ? 0 : -1;
	if (c->waiting) {
		c->responses->started_ns = c->waiting->started_ns;
		conn_http1_stop_waiting(c);
	}
	body_start(&c->body, q);
	c->head = q->method == METHOD_HEAD;
	enum persistence persistence = q->minor >= 1 ? PERSIST_SILENTLY : PERSIST_SAID;
	if (!q->keep_alive || w->draining) persistence = PERSIST_NOT;
	/* the client does not know that the connection ends, and may have sent more */
	c->linger |= q->keep_alive && w->draining;
	/* a client that waits for a 100 and is refused may send the body or not: what comes next is ambiguous */
	if (q->expect_continue && r.status >= 400) {
		persistence = PERSIST_NOT;
		c->linger = true;
		c->body = (struct body){0};
	} else {
		c->owes_continue = q->expect_continue;
	}
	return respond(w, c, &r, q->method == METHOD_HEAD, persistence, q) ? 1 : -1;
}

static bool response_batch_full(const struct response_batch *x) {
	return x->responses >= CONN_PIPELINE_MAX || x->files >= CONN_PIPELINE_FILES ||
		   iob_bytesleft(x->batch) >= CONN_PIPELINE_BYTES || iob_parts(x->batch) >= IOB_PART_LIMIT / 4 ||
		   x->log_length >= CONN_PIPELINE_BYTES;
}

/* One step of consume(): the bytes used up; 0: more are needed, or an answer has to go out, first; -1: no memory. */
static int consume_one(struct conn_context *w, struct conn *c, const char *data, size_t length) {
	if (body_pending(&c->body)) {
		int n = body_skip(&c->body, data, length);
		c->owes_continue = false;
		if (n >= 0) return n;
		return refuse(w, c, -n, c->head, NULL) ? (int)length : -1;
	}
	struct request q;
	int n = request_parse(&q, data, length);
	if (n < 0) return refuse(w, c, -n, q.method == METHOD_HEAD, &q) ? (int)length : -1;
	/* the answer to a request with a body waits for the body: those before it must not */
	if (n == 0 || (q.framing != BODY_NONE && c->responses->responses)) return 0;
	int responded = respond_to(w, c, &q);
	return responded == 1 ? n : responded;
}

/* Makes answers from the bytes at hand, as far as they go and the exchange holds them. The bytes used up; -1: no
 * memory. */
static ssize_t consume(struct conn_context *w, struct conn *c, const char *data, size_t length) {
	size_t at = 0;
	if (!c->responses && !(c->responses = response_batch_take(&w->batches))) return -1;
	while (at < length && (body_pending(&c->body) || (!c->closing && !response_batch_full(c->responses)))) {
		int n = consume_one(w, c, data + at, length - at);
		if (n < 0) return -1;
		if (n == 0) break;
		at += (size_t)n;
	}
	c->begun |= at > 0;
	if (!c->responses->responses) {
		response_batch_return(&w->batches, c->responses);
		c->responses = NULL;
	}
	return (ssize_t)at;
}

/* --- going round --- */

/* Waits for the client. */
static void await_input(struct conn_context *w, struct conn *c) {
	if (c->tls && tls_ended(c->tls)) {
		conn_close(w, c);
		return;
	}
	enum awaited awaited = body_pending(&c->body) ? CONN_AWAIT_BODY
						   : c->input_length      ? CONN_AWAIT_HEAD
												  : CONN_AWAIT_REQUEST;
	if (awaited == CONN_AWAIT_REQUEST && w->draining) {
		(void)conn_close_idle(w, c);
		return;
	}
	bool anew = awaited != c->awaited;
	c->awaited = (uint8_t)awaited;
	c->state = CONN_READ;
	if (anew) conn_set_timeout(w, c);
	/* what TLS has to send by itself, or of a 100, goes out meanwhile */
	bool failed = conn_blocked(c) && io_wantwrite(w->loop, c->fd) == -1;
	if (!conn_blocked(c)) io_dontwantwrite(w->loop, c->fd);
	if (failed || io_wantread(w->loop, c->fd) == -1) conn_close(w, c);
	else conn_update_memory(w, c);
}

/* Waits for the job: nothing that the client does is of interest, but what TLS has to send goes out. */
static void await_job(struct conn_context *w, struct conn *c) {
	io_timeout(w->loop, c->fd, 0);
	io_dontwantread(w->loop, c->fd);
	bool failed = conn_blocked(c) && io_wantwrite(w->loop, c->fd) == -1;
	if (!conn_blocked(c)) io_dontwantwrite(w->loop, c->fd);
	if (failed) conn_close(w, c);
	else conn_update_memory(w, c);
}

/* Sends what it can of the responses. If the socket is full, sets the deadline for a slow reader. */
static enum iob_result send_responses(struct conn_context *w, struct conn *c) {
	uint64_t sent = 0;
	enum iob_result result = conn_transmit(w, c, c->responses->batch, conn_share(w, c), conn_rest(c), &sent);
	w->sent += sent;
	if (result == IOB_DONE) {
		if (c->state == CONN_READ) w->at_once_ms = io_now(w->loop);
		response_batch_log(&w->batches, c->responses);
		response_batch_return(&w->batches, c->responses);
		c->responses = NULL;
		c->state = CONN_READ;
	} else if (result == IOB_AGAIN && (sent || c->state != CONN_WRITE)) {
		c->unread = (int32_t)platform_send_queue(c->fd);
		c->state = CONN_WRITE;
		conn_set_timeout(w, c);
	}
	return result;
}

/* Waits for the socket. */
static void await_output(struct conn_context *w, struct conn *c) {
	c->state = CONN_WRITE;
	io_dontwantread(w->loop, c->fd);
	if (io_wantwrite(w->loop, c->fd) == -1) conn_close(w, c);
	else conn_update_memory(w, c);
}

/* The answers before it have left, but may still fill the socket: then it has to wait. */
static enum iob_result send_continue(struct conn_context *w, struct conn *c) {
	uint64_t sent = 0;
	struct response_batch *x = response_batch_take(&w->batches);
	if (!x) return IOB_FAILED;
	enum iob_result result = iob_addbuf(x->batch, http1_continue.at, http1_continue.length, NULL, NULL) == 0
								 ? conn_transmit(w, c, x->batch, http1_continue.length, IO_LAST, &sent)
								 : IOB_FAILED;
	response_batch_return(&w->batches, x);
	if (result == IOB_AGAIN && !sent) {
		bool anew = c->state != CONN_WRITE;
		c->state = CONN_WRITE;
		c->unread = (int32_t)platform_send_queue(c->fd);
		if (anew) conn_set_timeout(w, c);
		return IOB_AGAIN;
	}
	c->owes_continue = false;
	return sent == http1_continue.length ? IOB_DONE : IOB_FAILED;
}

void conn_http1_run(struct conn_context *w, struct conn *c, const char *data, size_t length) {
	/* RFC 9113, sections 3.3 and 3.4: the preface begins a connection; with TLS, ALPN says so */
	if (!c->begun && !c->tls && http2_begins(data, length)) {
		if ((c->http2 = http2_new(&w->http2, &http2_connection, c, c->fd, &c->peer, c->port, false)))
			conn_http2_run(w, c, data, length);
		else conn_close(w, c);
		return;
	}
	while (true) {
		ssize_t used = consume(w, c, data, length);
		if (used == -1) break;
		data += used;
		length -= (size_t)used;
		bool continues = body_pending(&c->body) && c->owes_continue;
		bool wait = !continues && (body_pending(&c->body) || !c->responses);
		enum iob_result result = wait ? IOB_AGAIN : continues ? send_continue(w, c) : send_responses(w, c);
		if (result == IOB_FAILED) break;
		if (result == IOB_DONE && continues) continue;
		if (result == IOB_DONE && c->closing) {
			c->linger |= length > 0;
			conn_end(w, c);
			return;
		}
		if (result == IOB_DONE && length) continue;
		if (!conn_keep_input(c, data, length)) break;
		if (c->state == CONN_WAIT) await_job(w, c);
		else if (wait || result == IOB_DONE) await_input(w, c);
		else await_output(w, c);
		return;
	}
	conn_close(w, c);
}

/* Returns whether bytes that came behind part of a head can be put aside without a look at the whole: they end no line,
 * and the head is past its first. So a head is looked at once a line, not once a packet. */
static bool only_continues(const char *data, size_t kept, size_t length) {
	return length < HEAD_MAX && memchr(data, '\n', kept) && !memchr(data + kept, '\n', length - kept) &&
		   request_plausible(data + kept, length - kept);
}

void conn_http1_receive(struct conn_context *w, struct conn *c, size_t kept, size_t length) {
	if (length > kept && !(kept && only_continues(w->scratch, kept, length))) conn_http1_run(w, c, w->scratch, length);
	else if (conn_keep_input(c, w->scratch, length)) await_input(w, c);
	else conn_close(w, c);
}

void conn_http1_writable(struct conn_context *w, struct conn *c) {
	if (c->state == CONN_READ || c->state == CONN_WAIT) {
		enum iob_result sent = tls_flush(c->tls);
		if (sent == IOB_FAILED) conn_close(w, c);
		else if (sent == IOB_DONE) io_dontwantwrite(w->loop, c->fd);
		return;
	}
	if (c->owes_continue) {
		conn_http1_run(w, c, w->scratch, conn_fetch_input(w, c));
		return;
	}
	enum iob_result result = send_responses(w, c);
	if (result == IOB_AGAIN) {
		conn_update_memory(w, c);
	} else if (result == IOB_FAILED) {
		conn_close(w, c);
	} else if (c->closing) {
		c->linger |= c->input_length > 0;
		conn_end(w, c);
	} else {
		conn_http1_run(w, c, w->scratch, conn_fetch_input(w, c));
	}
}

void conn_http1_timed_out(struct conn_context *w, struct conn *c) {
	bool begun = c->state == CONN_READ && c->awaited != CONN_AWAIT_REQUEST;
	(void)conn_fetch_input(w, c); /* what came of the request is of no use any more */
	if (!begun || (!c->responses && !(c->responses = response_batch_take(&w->batches))) ||
		!refuse(w, c, 408, body_pending(&c->body) && c->head, NULL)) {
		conn_close(w, c);
		return;
	}
	conn_http1_run(w, c, w->scratch, 0);
}

void conn_http1_refuse_clear(struct conn_context *w, struct conn *c) {
	struct response r;
	response_status(&r, 400);
	r.page = SLICE("<!doctype html>\n<title>400 Bad Request</title>\n<h1>This port speaks HTTPS</h1>\n"
				   "<p>It was asked over plain HTTP: the address has to begin with https://\n");
	c->responses = response_batch_take(&w->batches);
	c->linger = true;
	if (c->responses && respond(w, c, &r, false, PERSIST_NOT, NULL)) conn_http1_run(w, c, w->scratch, 0);
	else conn_close(w, c);
}
