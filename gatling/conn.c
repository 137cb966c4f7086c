/* conn.c - see conn.h. Bytes come in conn_readable(), through TLS if need be. Those of HTTP/1.1 become requests and
 * answers in consume(), and leave in flush(); run() goes round until the client or the socket has to be waited for.
 * Those of HTTP/2 go to http2.c, whose frames leave in push(). */
#include "gatling/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/body.h"
#include "gatling/exchange.h"
#include "gatling/http1.h"
#include "gatling/http2.h"
#include "gatling/owfat.h"
#include "gatling/platform.h"

enum state {
	STATE_HANDSHAKE, /* of TLS */
	STATE_READ,      /* waits for a request, or for the rest of one */
	STATE_WRITE,     /* waits until the socket takes more of the answers; reads nothing, but with HTTP/2 */
	STATE_LINGER     /* has sent its last answer and reads on, to drop it */
};

/* What a deadline is for in STATE_READ: it is set when this changes, and bytes trickling in do not move it. */
enum awaited { AWAIT_NOTHING, AWAIT_HANDSHAKE, AWAIT_REQUEST, AWAIT_HEAD, AWAIT_BODY };

struct conn {
	enum cookie_kind kind;
	int fd;
	struct peer peer;
	uint16_t port;
	uint8_t state, awaited;
	bool secure : 1;        /* a client of the port for TLS */
	bool closing : 1;       /* no further request is read */
	bool linger : 1;        /* the client may still be sending: do not close in its face */
	bool owes_continue : 1; /* the client waits for a 100 */
	bool head : 1;          /* the request whose body is read is a HEAD */
	struct body body;
	union {
		int32_t unread;    /* STATE_WRITE: bytes that the client had not acknowledged when its deadline was set */
		uint32_t lingered; /* STATE_LINGER: bytes dropped */
	};
	struct tls *tls;     /* NULL: none */
	struct http2 *http2; /* NULL: this is HTTP/1.1 */
	struct exchange *exchange;
	char *input; /* read but not used up: part of a request, or requests while answers wait */
	uint32_t input_length;
};

struct conn *conn_new(struct worker *w, int fd, const struct listener *listener, const struct sockaddr *peer) {
	struct conn *c = calloc(1, sizeof *c);
	if (!c || io_fd(w->loop, fd, c) == -1) {
		free(c);
		close(fd);
		return NULL;
	}
	c->kind = COOKIE_CONNECTION;
	c->fd = fd;
	c->port = (uint16_t)listener->port;
	c->peer = peer_of(peer);
	c->secure = listener->secure;
	c->state = c->secure ? STATE_HANDSHAKE : STATE_READ;
	c->awaited = c->secure ? AWAIT_NOTHING : AWAIT_REQUEST;
	w->connections++;
	return c;
}

/* --- the bytes --- */

/* As io_tryread(). */
static ssize_t receive(struct worker *w, struct conn *c, char *buffer, size_t length) {
	return c->tls ? tls_read(c->tls, buffer, length) : io_tryread(w->loop, c->fd, buffer, length);
}

/* As iob_send(). */
static enum iob_result transmit(struct worker *w, struct conn *c, iob *batch, uint64_t most, uint64_t *sent) {
	/* the FIN of a connection that ends goes out with the last of the answer: a segment less each way */
	enum io_rest rest = c->closing ? IO_MORE : IO_LAST;
	return c->tls ? tls_send(c->tls, batch, most, rest, sent) : iob_send(w->loop, c->fd, batch, most, rest, sent);
}

static uint64_t share_of(const struct worker *w, const struct conn *c) {
	return c->state == STATE_WRITE ? w->share : SHARE_MOST;
}

/* --- the end --- */

void conn_close(struct worker *w, struct conn *c) {
	if (c->exchange) {
		exchange_log(w, c->exchange);
		exchange_give_back(w, c->exchange);
	}
	if (c->tls) tls_close(c->tls);
	tls_free(c->tls);
	http2_free(c->http2);
	free(c->input);
	io_close(w->loop, c->fd);
	free(c);
	w->connections--;
}

bool conn_idle(const struct conn *c) {
	return c->state == STATE_READ && c->awaited == AWAIT_REQUEST && !c->input_length &&
		   (!c->http2 || http2_idle(c->http2));
}

static void run(struct worker *w, struct conn *c, const char *data, size_t length);
static void run_http2(struct worker *w, struct conn *c, const char *data, size_t length);
static void say_goodbye(struct worker *w, struct conn *c);

bool conn_part(struct worker *w, struct conn *c) {
	ssize_t n = receive(w, c, w->scratch, SCRATCH);
	if (n > 0) {
		if (c->http2) run_http2(w, c, w->scratch, (size_t)n);
		else run(w, c, w->scratch, (size_t)n);
		return false;
	}
	if (c->http2) say_goodbye(w, c);
	conn_close(w, c);
	return true;
}

static void set_timeout(struct worker *w, struct conn *c) {
	int64_t timeout_ms = w->options->timeout_s ? (int64_t)w->options->timeout_s * 1000 : NEVER_MS;
	io_timeout(w->loop, c->fd, io_now(w->loop) + timeout_ms);
}

/* The last answer is out. Closing with unread bytes would reset the connection and take the answer with it. */
static void end(struct worker *w, struct conn *c) {
	/* shutdown(2) also for who does not linger: close(2) alone would reset, and take the answer with it that waits for
	 * the FIN, when something has come that was not read */
	if (shutdown(c->fd, SHUT_WR) == -1 || !c->linger) {
		conn_close(w, c);
		return;
	}
	c->state = STATE_LINGER;
	c->lingered = 0;
	io_dontwantwrite(w->loop, c->fd);
	io_timeout(w->loop, c->fd, io_now(w->loop) + LINGER_MS);
	if (io_wantread(w->loop, c->fd) == -1) conn_close(w, c);
}

static void linger(struct worker *w, struct conn *c) {
	ssize_t n = io_tryread(w->loop, c->fd, w->scratch, SCRATCH);
	if (n > 0) c->lingered += (uint32_t)n;
	if (n == 0 || (n == -1 && errno != EAGAIN) || c->lingered > LINGER_BYTES) conn_close(w, c);
}

/* --- answers --- */

/* Appends a response to those under way. false: there is no memory for it. */
static bool respond(struct worker *w, struct conn *c, struct response *r, bool head_only, enum persistence persistence,
					struct slice request_line) {
	uint64_t bytes;
	int status = r->status;
	if (persistence == PERSIST_NOT) c->closing = true;
	c->awaited = AWAIT_REQUEST;
	c->exchange->files += r->file && r->file->fd != -1;
	if (http1_write(c->exchange->batch, r, w->server_date[c->tls != NULL], head_only, persistence, &bytes) == -1)
		return false;
	c->exchange->responses++;
	exchange_note(w, c->exchange, &c->peer, request_line, status, bytes);
	return true;
}

/* Answers what cannot be understood, or not waited for, and reads nothing more. An answer that waits for the body of
 * its request is void. */
static bool refuse(struct worker *w, struct conn *c, int status, bool head_only, struct slice request_line) {
	struct response r;
	answer_status(&r, status);
	if (body_pending(&c->body)) exchange_reset(c->exchange);
	c->body = (struct body){0};
	c->linger = true;
	return respond(w, c, &r, head_only, PERSIST_NOT, request_line);
}

/* To a client that speaks HTTP without TLS to the port for TLS. */
static bool refuse_clear(struct worker *w, struct conn *c) {
	struct response r;
	answer_status(&r, 400);
	r.page = strdup("<!doctype html>\n<title>400 Bad Request</title>\n<h1>This port speaks HTTPS</h1>\n"
					"<p>It was asked over plain HTTP: the address has to begin with https://\n");
	if (!r.page) return false;
	r.page_length = strlen(r.page);
	c->linger = true;
	return respond(w, c, &r, false, PERSIST_NOT, SLICE("-"));
}

/* Where a connection came in, for a request without Host (HTTP/1.0). */
static struct endpoint local_endpoint(const struct conn *c, char *text) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	struct endpoint local = {.port = c->port, .secure = c->tls};
	if (getsockname(c->fd, (struct sockaddr *)&address, &length) == -1) return local;
	struct peer self = peer_of((struct sockaddr *)&address);
	size_t n = peer_format(text + 1, &self);
	struct slice host = {.at = text + 1, .length = n};
	if (memchr(text + 1, ':', n)) { /* an IPv6 literal */
		text[0] = '[';
		text[n + 1] = ']';
		host = (struct slice){.at = text, .length = n + 2};
	}
	if (address.ss_family != AF_UNIX && host_valid(host)) local.host = host;
	return local;
}

static bool respond_to(struct worker *w, struct conn *c, const struct request *q) {
	char local_name[PEER_MAX + 2];
	struct endpoint local = {.port = c->port, .secure = c->tls};
	struct response r;
	if (!q->host.at && (w->options->vhosts != VHOSTS_OFF || w->content.https_port))
		local = local_endpoint(c, local_name);
	answer(&w->content, q, &local, &r);
	enum persistence persistence = q->minor >= 1 ? PERSIST_SILENTLY : PERSIST_SAID;
	if (!q->keep_alive || w->draining) persistence = PERSIST_NOT;
	c->linger |= q->keep_alive && w->draining; /* it does not know yet, and may have sent more */
	/* who waits for a 100 and is refused may send the body or not: nobody can know what comes next */
	if (q->expect_continue && r.status >= 400) {
		persistence = PERSIST_NOT;
		c->linger = true;
		c->body = (struct body){0};
	} else {
		c->owes_continue = q->expect_continue;
	}
	return respond(w, c, &r, q->method == METHOD_HEAD, persistence, q->line);
}

static bool exchange_full(const struct exchange *x) {
	return x->responses >= PIPELINE_MAX || x->files >= PIPELINE_FILES || iob_bytesleft(x->batch) >= PIPELINE_BYTES ||
		   iob_parts(x->batch) >= IOB_PART_LIMIT / 4;
}

/* One step of consume(): the bytes used up; 0: more are needed, or an answer has to go out, first; -1: no memory. */
static int consume_one(struct worker *w, struct conn *c, const char *data, size_t length) {
	if (body_pending(&c->body)) {
		int n = body_skip(&c->body, data, length);
		c->owes_continue = false;
		if (n >= 0) return n;
		return refuse(w, c, -n, c->head, SLICE("-")) ? (int)length : -1;
	}
	struct request q;
	int n = request_parse(&q, data, length);
	if (n < 0) return refuse(w, c, -n, q.method == METHOD_HEAD, q.line) ? (int)length : -1;
	/* the answer to a request with a body waits for the body: those before it must not */
	if (n == 0 || (q.framing != BODY_NONE && c->exchange->responses)) return 0;
	body_start(&c->body, &q);
	c->head = q.method == METHOD_HEAD;
	return respond_to(w, c, &q) ? n : -1;
}

/* Makes answers from the bytes at hand, as far as they go and the exchange holds them. The bytes used up; -1: no
 * memory. */
static ssize_t consume(struct worker *w, struct conn *c, const char *data, size_t length) {
	size_t at = 0;
	if (!c->exchange && !(c->exchange = exchange_take(w))) return -1;
	while (at < length && (body_pending(&c->body) || (!c->closing && !exchange_full(c->exchange)))) {
		int n = consume_one(w, c, data + at, length - at);
		if (n < 0) return -1;
		if (n == 0) break;
		at += (size_t)n;
	}
	if (!c->exchange->responses) {
		exchange_give_back(w, c->exchange);
		c->exchange = NULL;
	}
	return (ssize_t)at;
}

/* --- going round --- */

/* Keeps bytes for later. They may lie in the scratch buffer, which others use meanwhile. */
static bool keep_input(struct conn *c, const char *data, size_t length) {
	c->input = length ? malloc(length) : NULL;
	c->input_length = c->input ? (uint32_t)length : 0;
	if (c->input) memcpy(c->input, data, length);
	return c->input || !length;
}

/* Puts what was kept to the front of the scratch buffer; its length. */
static size_t fetch_input(struct worker *w, struct conn *c) {
	size_t length = c->input_length;
	if (!length) return 0;
	memcpy(w->scratch, c->input, length);
	free(c->input);
	c->input = NULL;
	c->input_length = 0;
	return length;
}

/* Waits for the client. */
static void await_input(struct worker *w, struct conn *c) {
	if (c->tls && tls_ended(c->tls)) {
		conn_close(w, c);
		return;
	}
	enum awaited awaited = body_pending(&c->body) ? AWAIT_BODY : c->input_length ? AWAIT_HEAD : AWAIT_REQUEST;
	if (awaited == AWAIT_REQUEST && w->draining) {
		(void)conn_part(w, c);
		return;
	}
	if (awaited != c->awaited || awaited == AWAIT_REQUEST) set_timeout(w, c);
	c->awaited = (uint8_t)awaited;
	c->state = STATE_READ;
	io_dontwantwrite(w->loop, c->fd);
	if (io_wantread(w->loop, c->fd) == -1) conn_close(w, c);
}

/* Sends what it can of the exchange; DONE ends the exchange. */
static enum iob_result flush(struct worker *w, struct conn *c) {
	uint64_t sent = 0;
	enum iob_result result = transmit(w, c, c->exchange->batch, share_of(w, c), &sent);
	w->sent += sent;
	if (result == IOB_DONE) {
		if (c->state == STATE_READ) w->at_once_ms = io_now(w->loop);
		exchange_log(w, c->exchange);
		exchange_give_back(w, c->exchange);
		c->exchange = NULL;
		c->state = STATE_READ;
	} else if (result == IOB_AGAIN && (sent || c->state != STATE_WRITE)) {
		c->unread = (int32_t)platform_send_queue(c->fd);
		set_timeout(w, c);
	}
	return result;
}

/* Waits for the socket. */
static void await_output(struct worker *w, struct conn *c) {
	c->state = STATE_WRITE;
	io_dontwantread(w->loop, c->fd);
	if (io_wantwrite(w->loop, c->fd) == -1) conn_close(w, c);
}

/* The answers before it have left, but may still fill the socket: then it has to wait. */
static enum iob_result send_continue(struct worker *w, struct conn *c) {
	uint64_t sent = 0;
	struct exchange *x = exchange_take(w);
	if (!x) return IOB_FAILED;
	enum iob_result result = iob_addbuf(x->batch, http1_continue.at, http1_continue.length, NULL, NULL) == 0
								 ? transmit(w, c, x->batch, http1_continue.length, &sent)
								 : IOB_FAILED;
	exchange_give_back(w, x);
	if (result == IOB_AGAIN && !sent) {
		if (c->state != STATE_WRITE) set_timeout(w, c);
		return IOB_AGAIN;
	}
	c->owes_continue = false;
	return sent == http1_continue.length ? IOB_DONE : IOB_FAILED;
}

/* Does all that can be done with the bytes at hand, which lie in the scratch buffer. */
static void run(struct worker *w, struct conn *c, const char *data, size_t length) {
	if (http2_begins(data, length) && !c->exchange && !body_pending(&c->body)) {
		if ((c->http2 = http2_new(w, c->fd, &c->peer, c->port, c->tls))) run_http2(w, c, data, length);
		else conn_close(w, c);
		return;
	}
	while (true) {
		ssize_t used = consume(w, c, data, length);
		if (used == -1) break;
		data += used;
		length -= (size_t)used;
		bool continues = body_pending(&c->body) && c->owes_continue;
		bool wait = !continues && (body_pending(&c->body) || !c->exchange);
		enum iob_result result = wait ? IOB_AGAIN : continues ? send_continue(w, c) : flush(w, c);
		if (result == IOB_FAILED) break;
		if (result == IOB_DONE && continues) continue;
		if (result == IOB_DONE && c->closing) {
			c->linger |= length > 0;
			end(w, c);
			return;
		}
		if (result == IOB_DONE && length) continue;
		if (!keep_input(c, data, length)) break;
		if (wait || result == IOB_DONE) await_input(w, c);
		else await_output(w, c);
		return;
	}
	conn_close(w, c);
}

/* Whether bytes that came behind part of a head can be put aside without another look at the whole: they end no line of
 * a head that is past its first. So the bytes of a head are looked at once a line, not once a packet. */
static bool only_continues(const char *data, size_t kept, size_t length) {
	return length < HEAD_MAX && memchr(data, '\n', kept) && !memchr(data + kept, '\n', length - kept) &&
		   request_plausible(data + kept, length - kept);
}

/* --- HTTP/2 --- */

/* Keeps what the socket has not taken of frames in the worker's buffer. */
static bool keep_frames(struct worker *w, struct conn *c, size_t length) {
	size_t left = iob_bytesleft(c->exchange->batch);
	iob_reset(c->exchange->batch);
	return iob_addcopy(c->exchange->batch, w->frames + length - left, left) == 0;
}

/* Sends the frames at the start of the worker's buffer, behind those that wait, then further ones as long as there are
 * some and the socket takes them. IOB_AGAIN: there is more to be sent. */
static enum iob_result push(struct worker *w, struct conn *c, size_t length) {
	uint64_t sent = 0, most = share_of(w, c);
	enum iob_result result = IOB_DONE;
	if (c->exchange && length) { /* they wait, too */
		if (iob_bytesleft(c->exchange->batch) + length > HTTP2_UNSENT_MAX ||
			iob_addcopy(c->exchange->batch, w->frames, length) == -1)
			return IOB_FAILED;
		length = 0;
	}
	while (result == IOB_DONE) {
		if (!c->exchange) {
			struct http2_output out = {.at = w->frames + length, .end = w->frames + sizeof w->frames};
			if (sent >= most && http2_sendable(c->http2)) return IOB_AGAIN;
			http2_produce(c->http2, &out);
			length = (size_t)(out.at - w->frames);
			c->closing |= http2_ended(c->http2);
			if (!length) break;
			if (!(c->exchange = exchange_take(w))) return IOB_FAILED;
			if (iob_addbuf(c->exchange->batch, w->frames, length, NULL, NULL) == -1) return IOB_FAILED;
		}
		c->closing |= http2_ended(c->http2);
		result = transmit(w, c, c->exchange->batch, UINT64_MAX, &sent);
		if (result == IOB_AGAIN && length && !keep_frames(w, c, length)) return IOB_FAILED;
		length = 0;
		if (result != IOB_DONE) break;
		exchange_give_back(w, c->exchange);
		c->exchange = NULL;
	}
	w->sent += sent;
	return result;
}

/* Waits for the client, and for the socket if there is more to be sent. */
static void await_frames(struct worker *w, struct conn *c, enum iob_result result) {
	bool output = result == IOB_AGAIN || io_reading(w->loop, c->fd);
	if (output) c->unread = (int32_t)platform_send_queue(c->fd);
	c->state = output ? STATE_WRITE : STATE_READ;
	if (output && c->closing) io_dontwantread(w->loop, c->fd);
	else if (io_wantread(w->loop, c->fd) == -1) result = IOB_FAILED;
	if (!output) io_dontwantwrite(w->loop, c->fd);
	else if (io_wantwrite(w->loop, c->fd) == -1) result = IOB_FAILED;
	if (result == IOB_FAILED) conn_close(w, c);
}

/* After frames have come, or room for more: sends what there is and waits for what comes next. */
static void go_on(struct worker *w, struct conn *c, size_t length) {
	enum iob_result result = push(w, c, length);
	if (result == IOB_FAILED) {
		conn_close(w, c);
		return;
	}
	if (result == IOB_DONE && c->closing) {
		c->linger = true;
		end(w, c);
		return;
	}
	if (http2_progress(c->http2)) set_timeout(w, c);
	await_frames(w, c, result);
}

/* Takes in the frames at hand, which lie in the scratch buffer, and answers. */
static void run_http2(struct worker *w, struct conn *c, const char *data, size_t length) {
	struct http2_output out = {.at = w->frames, .end = w->frames + sizeof w->frames};
	size_t used = http2_receive(c->http2, data, length, c->exchange != NULL, &out);
	if (w->draining) http2_drain(c->http2, &out);
	if (!io_deadline(w->loop, c->fd) || c->awaited != AWAIT_REQUEST) set_timeout(w, c);
	c->awaited = AWAIT_REQUEST;
	if (!keep_input(c, data + used, length - used)) {
		conn_close(w, c);
		return;
	}
	go_on(w, c, (size_t)(out.at - w->frames));
}

/* Tells the client that the connection ends, if that goes out at once. */
static void say_goodbye(struct worker *w, struct conn *c) {
	struct http2_output out = {.at = w->frames, .end = w->frames + sizeof w->frames};
	http2_drain(c->http2, &out);
	c->closing = true;
	(void)push(w, c, (size_t)(out.at - w->frames));
}

void conn_drain(struct worker *w, struct conn *c) {
	struct http2_output out = {.at = w->frames, .end = w->frames + sizeof w->frames};
	if (conn_idle(c)) {
		(void)conn_part(w, c);
	} else if (c->http2 && c->state != STATE_LINGER) {
		http2_drain(c->http2, &out);
		go_on(w, c, (size_t)(out.at - w->frames));
	}
}

/* --- TLS --- */

/* Goes on with the handshake, and then with the requests that have come behind it. */
static void shake_hands(struct worker *w, struct conn *c) {
	size_t length = 0;
	if (!c->tls && !(c->tls = tls_new(w->tls, w->loop, c->fd))) {
		conn_close(w, c);
		return;
	}
	if (c->awaited != AWAIT_HANDSHAKE) set_timeout(w, c);
	c->awaited = AWAIT_HANDSHAKE;
	/* when others have used up this turn, this one comes first in the next */
	enum tls_result result = w->handshakes < TLS_HANDSHAKES ? tls_handshake(c->tls, w->scratch, &length) : TLS_AGAIN;
	w->handshakes++;
	switch (result) {
	case TLS_DONE:
		c->state = STATE_READ;
		if (tls_chose_http2(c->tls) && !(c->http2 = http2_new(w, c->fd, &c->peer, c->port, true))) conn_close(w, c);
		else conn_readable(w, c);
		return;
	case TLS_FAILED: /* the client may still be sending, and shall read the alert */
		c->linger = true;
		end(w, c);
		return;
	case TLS_CLEAR:
		tls_free(c->tls);
		c->tls = NULL;
		c->state = STATE_READ;
		if ((c->exchange = exchange_take(w)) && refuse_clear(w, c)) run(w, c, w->scratch, 0);
		else conn_close(w, c);
		return;
	case TLS_AGAIN: break;
	}
	if (tls_blocked(c->tls)) {
		io_dontwantread(w->loop, c->fd);
		if (io_wantwrite(w->loop, c->fd) == -1) conn_close(w, c);
	} else {
		io_dontwantwrite(w->loop, c->fd);
		if (io_wantread(w->loop, c->fd) == -1) conn_close(w, c);
	}
}

/* --- what the loop reports --- */

void conn_readable(struct worker *w, struct conn *c) {
	if (c->state == STATE_LINGER) {
		linger(w, c);
		return;
	}
	if (c->state == STATE_HANDSHAKE) {
		shake_hands(w, c);
		return;
	}
	size_t kept = fetch_input(w, c);
	ssize_t n = receive(w, c, w->scratch + kept, SCRATCH - kept);
	if (n == 0 || (n == -1 && errno != EAGAIN)) {
		conn_close(w, c);
		return;
	}
	size_t length = kept + (n > 0 ? (size_t)n : 0);
	if (c->http2) {
		run_http2(w, c, w->scratch, length);
		return;
	}
	if (n == -1 || (kept && only_continues(w->scratch, kept, length))) {
		if (keep_input(c, w->scratch, length)) await_input(w, c);
		else conn_close(w, c);
		return;
	}
	run(w, c, w->scratch, length);
}

void conn_writable(struct worker *w, struct conn *c) {
	if (c->state == STATE_HANDSHAKE) {
		shake_hands(w, c);
		return;
	}
	if (c->http2) {
		go_on(w, c, 0);
		return;
	}
	if (c->owes_continue) {
		run(w, c, w->scratch, fetch_input(w, c));
		return;
	}
	enum iob_result result = flush(w, c);
	if (result == IOB_AGAIN) return;
	if (result == IOB_FAILED) {
		conn_close(w, c);
	} else if (c->closing) {
		c->linger |= c->input_length > 0;
		end(w, c);
	} else {
		run(w, c, w->scratch, fetch_input(w, c));
	}
}

/* The socket says that it has room when much of it is free again: who reads slowly may take longer than the timeout. */
static bool still_reads(struct conn *c) {
	long unread = platform_send_queue(c->fd);
	bool reads = unread != -1 && unread < c->unread;
	c->unread = (int32_t)unread;
	return reads;
}

void conn_timed_out(struct worker *w, struct conn *c) {
	if (c->state == STATE_WRITE && (io_reading(w->loop, c->fd) || still_reads(c))) {
		set_timeout(w, c);
		return;
	}
	if (c->http2 && c->state != STATE_LINGER) {
		say_goodbye(w, c);
		conn_close(w, c);
		return;
	}
	bool begun = c->state == STATE_READ && c->awaited != AWAIT_REQUEST;
	(void)fetch_input(w, c); /* what came of the request is of no use any more */
	if (!begun || (!c->exchange && !(c->exchange = exchange_take(w))) ||
		!refuse(w, c, 408, body_pending(&c->body) && c->head, SLICE("-"))) {
		conn_close(w, c);
		return;
	}
	run(w, c, w->scratch, 0);
}
