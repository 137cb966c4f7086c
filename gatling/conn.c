/* conn.c - see conn.h. Bytes come in conn_readable(), become requests and answers in consume(), and leave in flush();
 * run() goes round until the client or the socket has to be waited for. */
#include "gatling/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gatling/access.h"
#include "gatling/body.h"
#include "gatling/http1.h"
#include "gatling/owfat.h"
#include "gatling/platform.h"
#include "io/iob.h"

enum state {
	STATE_READ,  /* waits for a request, or for the rest of one */
	STATE_WRITE, /* waits until the socket takes more of the answers; reads nothing */
	STATE_LINGER /* has sent its last answer and reads on, to drop it */
};

/* What a deadline is for in STATE_READ: it is set when this changes, and bytes trickling in do not move it. */
enum awaited { AWAIT_REQUEST, AWAIT_HEAD, AWAIT_BODY };

/* Answers under way. Only a connection that has some owns one. */
struct exchange {
	iob *batch;
	int64_t started_ns;        /* when the requests were read */
	unsigned responses, files; /* and how many of them hold a file open */
	char *log;                 /* their lines, each with a newline, still without the time they took */
	size_t log_length, log_size;
	struct exchange *next; /* among the spare ones */
};

struct conn {
	enum cookie_kind kind;
	int fd;
	struct peer peer;
	uint16_t port;
	uint8_t state, awaited;
	bool closing : 1;       /* no further request is read */
	bool linger : 1;        /* the client may still be sending: do not close in its face */
	bool owes_continue : 1; /* the client waits for a 100 */
	bool head : 1;          /* the request whose body is read is a HEAD */
	struct body body;
	union {
		int32_t unread;    /* STATE_WRITE: bytes that the client had not acknowledged when its deadline was set */
		uint32_t lingered; /* STATE_LINGER: bytes dropped */
	};
	struct exchange *exchange;
	char *input; /* read but not used up: part of a request, or requests while answers wait */
	uint32_t input_length;
};

struct conn *conn_new(struct worker *w, int fd, unsigned port, const struct sockaddr *peer) {
	struct conn *c = calloc(1, sizeof *c);
	if (!c || io_fd(w->loop, fd, c) == -1) {
		free(c);
		close(fd);
		return NULL;
	}
	c->kind = COOKIE_CONNECTION;
	c->fd = fd;
	c->port = (uint16_t)port;
	c->peer = peer_of(peer);
	w->connections++;
	return c;
}

/* --- exchanges --- */

static struct exchange *exchange_take(struct worker *w) {
	struct exchange *x = w->spare;
	if (x) {
		w->spare = x->next;
		w->spares--;
	} else {
		x = calloc(1, sizeof *x);
		if (x && !(x->batch = iob_new())) {
			free(x);
			x = NULL;
		}
		if (!x) return NULL;
	}
	x->started_ns = io_now_ns(w->loop);
	return x;
}

static void exchange_free(struct exchange *x) {
	iob_free(x->batch);
	free(x->log);
	free(x);
}

static void exchange_reset(struct exchange *x) {
	iob_reset(x->batch);
	x->responses = x->files = 0;
	x->log_length = 0;
}

static void exchange_give_back(struct worker *w, struct exchange *x) {
	if (w->spares == SPARE_EXCHANGES) {
		exchange_free(x);
		return;
	}
	exchange_reset(x);
	if (x->log_size > LOG_KEPT) {
		free(x->log);
		x->log = NULL;
		x->log_size = 0;
	}
	x->next = w->spare;
	w->spare = x;
	w->spares++;
}

void conn_free_spares(struct worker *w) {
	for (struct exchange *x; (x = w->spare);) {
		w->spare = x->next;
		exchange_free(x);
	}
	w->spares = 0;
}

/* Notes a request for the log; for want of memory the line is lost, never the answer. */
static void note_request(struct worker *w, struct conn *c, struct slice request_line, int status, uint64_t bytes) {
	struct exchange *x = c->exchange;
	char line[ACCESS_LINE_MAX];
	if (!w->log) return;
	size_t n = access_format(line, &c->peer, w->log_date, request_line, status, bytes);
	line[n++] = '\n';
	if (x->log_size - x->log_length < n) {
		size_t size = 2 * x->log_size + n;
		char *log = realloc(x->log, size);
		if (!log) return;
		x->log = log;
		x->log_size = size;
	}
	memcpy(x->log + x->log_length, line, n);
	x->log_length += n;
}

/* Logs the requests of an exchange that has ended, with the seconds it took. */
static void log_exchange(struct worker *w, const struct exchange *x) {
	struct timespec now;
	char line[ACCESS_LINE_MAX + 32];
	if (!x->log_length) return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - x->started_ns;
	for (size_t at = 0; at < x->log_length;) {
		const char *end = memchr(x->log + at, '\n', x->log_length - at);
		size_t n = (size_t)(end - (x->log + at));
		memcpy(line, x->log + at, n);
		at += n + 1;
		line[n++] = ' ';
		n += fmt_ulonglong(line + n, (unsigned long long)ns / 1000000000);
		line[n++] = '.';
		for (int64_t unit = 100000; unit; unit /= 10) line[n++] = (char)('0' + ns / 1000 / unit % 10);
		log_line(w->log, line, n, io_now(w->loop));
	}
}

/* --- the end --- */

void conn_close(struct worker *w, struct conn *c) {
	if (c->exchange) {
		log_exchange(w, c->exchange);
		exchange_give_back(w, c->exchange);
	}
	free(c->input);
	io_close(w->loop, c->fd);
	free(c);
	w->connections--;
}

bool conn_idle(const struct conn *c) {
	return c->state == STATE_READ && c->awaited == AWAIT_REQUEST && !c->input_length;
}

static void run(struct worker *w, struct conn *c, const char *data, size_t length);

bool conn_part(struct worker *w, struct conn *c) {
	ssize_t n = io_tryread(w->loop, c->fd, w->scratch, SCRATCH);
	if (n > 0) run(w, c, w->scratch, (size_t)n);
	else conn_close(w, c);
	return n <= 0;
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
	struct slice server_date = {.at = w->server_date, .length = w->server_date_length};
	uint64_t bytes;
	int status = r->status;
	if (persistence == PERSIST_NOT) c->closing = true;
	c->awaited = AWAIT_REQUEST;
	c->exchange->files += r->file && r->file->fd != -1;
	if (http1_write(c->exchange->batch, r, server_date, head_only, persistence, &bytes) == -1) return false;
	c->exchange->responses++;
	note_request(w, c, request_line, status, bytes);
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

/* Where a connection came in, for a request without Host (HTTP/1.0). */
static struct endpoint local_endpoint(const struct conn *c, char *text) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	struct endpoint local = {.port = c->port};
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
	struct endpoint local = {.port = c->port};
	struct response r;
	if (!q->host.at && w->options->vhosts != VHOSTS_OFF) local = local_endpoint(c, local_name);
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
	uint64_t sent = 0, most = c->state == STATE_WRITE ? w->share : SHARE_MOST;
	/* the FIN of a connection that ends goes out with the last of the answer: a segment less each way */
	enum iob_result result = iob_send(w->loop, c->fd, c->exchange->batch, most, c->closing ? IO_MORE : IO_LAST, &sent);
	w->sent += sent;
	if (result == IOB_DONE) {
		if (c->state == STATE_READ) w->at_once_ms = io_now(w->loop);
		log_exchange(w, c->exchange);
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
	ssize_t n = io_trywrite(w->loop, c->fd, http1_continue.at, http1_continue.length);
	if (n == -1 && errno == EAGAIN) {
		if (c->state != STATE_WRITE) set_timeout(w, c);
		return IOB_AGAIN;
	}
	c->owes_continue = false;
	return n == (ssize_t)http1_continue.length ? IOB_DONE : IOB_FAILED;
}

/* Does all that can be done with the bytes at hand, which lie in the scratch buffer. */
static void run(struct worker *w, struct conn *c, const char *data, size_t length) {
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

void conn_readable(struct worker *w, struct conn *c) {
	if (c->state == STATE_LINGER) {
		linger(w, c);
		return;
	}
	size_t kept = fetch_input(w, c);
	ssize_t n = io_tryread(w->loop, c->fd, w->scratch + kept, SCRATCH - kept);
	if (n == 0 || (n == -1 && errno != EAGAIN)) {
		conn_close(w, c);
		return;
	}
	size_t length = kept + (n > 0 ? (size_t)n : 0);
	if (n == -1 || (kept && only_continues(w->scratch, kept, length))) {
		if (keep_input(c, w->scratch, length)) await_input(w, c);
		else conn_close(w, c);
		return;
	}
	run(w, c, w->scratch, length);
}

void conn_writable(struct worker *w, struct conn *c) {
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
	bool begun = c->state == STATE_READ && c->awaited != AWAIT_REQUEST;
	(void)fetch_input(w, c); /* what came of the request is of no use any more */
	if (!begun || (!c->exchange && !(c->exchange = exchange_take(w))) ||
		!refuse(w, c, 408, body_pending(&c->body) && c->head, SLICE("-"))) {
		conn_close(w, c);
		return;
	}
	run(w, c, w->scratch, 0);
}
