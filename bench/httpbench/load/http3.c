/* http3.c - see http3.h. Requests are encoded before the run (qpack.h), and their bytes stay where they are: nothing is
 * kept for those under way but the state of their streams, one for each place of a request. */
#include "bench/httpbench/load/http3.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/client/http3_frames.h"
#include "bench/client/http3_head.h"

enum { NO_STREAM = -1 };

/* Types of streams in one direction (section 6.2, and RFC 9204, section 4.2). */
enum stream_type { CONTROL, PUSH, ENCODER, DECODER, UNKNOWN, NOT_KNOWN_YET };

/* The stream of a request. */
struct stream {
	int64_t number; /* NO_STREAM: it is not open, or its request has ended */
	uint16_t place; /* of the request */
	bool blocked;   /* the server allows no more bytes */
	bool writing;   /* a part of the request was sent */
	int64_t length; /* of the content, as the head says, or HTTP3_NO_LENGTH */
	struct http3_frames frames;
};

/* A stream of the server's, in one direction. */
struct server_stream {
	enum stream_type type;
	bool settled; /* SETTINGS have come */
	struct http3_frames frames;
	char start[HTTP3_NUMBER]; /* what has come of its type */
	unsigned started;
};

struct http3_session {
	struct connections *all;
	struct connection *conn;
	struct quic *quic;
	int64_t control; /* our stream; NO_STREAM: not open, or its bytes were sent */
	unsigned control_sent;
	unsigned writing; /* how many streams are */
	struct server_stream server[QUIC_SERVER_STREAMS];
	struct stream stream[]; /* for each place of a request */
};

/* The control stream: its type, and empty SETTINGS, which allow no dynamic table (RFC 9204, section 5). */
static const char control_bytes[] = {CONTROL, HTTP3_SETTINGS, 0};

static struct http3_session *session_of(const struct connection *conn) { return conn->session; }

static struct connection_request *request_of(const struct http3_session *h, const struct stream *s) {
	return connection_at(h->all, h->conn, s->place);
}

static struct stream *stream_of(struct http3_session *h, const struct connection_request *p) {
	return &h->stream[p - connection_at(h->all, h->conn, 0)];
}

/* --- the end of a stream --- */

static void end_stream(struct http3_session *h, struct stream *s) {
	h->writing -= s->writing;
	s->writing = s->blocked = false;
	s->number = NO_STREAM;
	http3_frames_free(&s->frames);
}

static void fail_stream(struct http3_session *h, struct stream *s, enum failure failure) {
	end_stream(h, s);
	connection_failed(h->all, h->conn, request_of(h, s), failure);
}

static void give_back(struct http3_session *h, struct stream *s) {
	end_stream(h, s);
	connection_give_back(h->all, h->conn, request_of(h, s));
}

/* The server has ended its side: the response is complete, or it is wrong. */
static void finish(struct http3_session *h, struct stream *s) {
	struct connection_request *p = request_of(h, s);
	const struct response *r = &p->response;
	const bool bodiless = h->all->plan->target[p->target].bodiless || r->status == 204 || r->status == 304;
	if (s->writing) quic_stop_sending(h->quic, s->number, HTTP3_NO_ERROR); /* it wants no more of it (section 4.1) */
	if (!http3_frames_between(&s->frames)) fail_stream(h, s, FAILURE_SHORT);
	else if (!r->status) fail_stream(h, s, FAILURE_PROTOCOL);
	else if (!bodiless && s->length != HTTP3_NO_LENGTH && r->seen != (uint64_t)s->length)
		fail_stream(h, s, r->seen < (uint64_t)s->length ? FAILURE_SHORT : FAILURE_PROTOCOL);
	else {
		end_stream(h, s);
		connection_answered(h->all, h->conn, p);
	}
}

/* --- receiving --- */

/* Takes a HEADERS frame: of an interim response, of the response, or of its trailers, which do not matter. Returns
 * false if the response is malformed. *error: the connection cannot go on. */
static bool take_head(const struct http3_session *h, struct stream *s, const struct http3_event *e, uint64_t *error) {
	struct connection_request *p = request_of(h, s);
	struct http3_head head;
	if (p->response.status) return true;
	const int result = http3_head_parse(&head, e->at, e->length);
	if (result == HTTP3_DECOMPRESSION_FAILED) *error = HTTP3_DECOMPRESSION_FAILED;
	if (result) return false;
	if (head.status < 200) return true;
	p->response.status = (uint16_t)head.status;
	p->first_ns = h->all->now_ns;
	s->length = head.content_length;
	return true;
}

static uint64_t take_response(struct http3_session *h, struct stream *s, const char *data, size_t length, bool ends) {
	struct connection_request *p = request_of(h, s);
	uint64_t error = 0;
	while (length) {
		struct http3_event e;
		const size_t n = http3_frames_take(&s->frames, data, length, &e);
		data += n;
		length -= n;
		if (e.kind == HTTP3_WRONG) return e.error;
		if (e.kind == HTTP3_NOTHING) continue;
		if (e.kind == HTTP3_CONTENT) {
			if (!p->response.status) return HTTP3_FRAME_UNEXPECTED;
			response_compare(&p->response, e.at, e.length, &h->all->plan->expected);
		} else if (e.type == HTTP3_PUSH_PROMISE) {
			return HTTP3_ID_ERROR; /* none was allowed (section 7.2.5) */
		} else if (e.type != HTTP3_HEADERS) {
			return HTTP3_FRAME_UNEXPECTED;
		} else if (!take_head(h, s, &e, &error)) {
			if (error) return error;
			quic_cancel(h->quic, s->number, HTTP3_MESSAGE_ERROR);
			fail_stream(h, s, FAILURE_PROTOCOL);
			return 0;
		}
	}
	if (ends) finish(h, s);
	return 0;
}

/* The server takes no requests from that stream on: they get another connection (section 5.2). */
static uint64_t take_goaway(struct http3_session *h, const struct http3_event *e) {
	uint64_t first;
	if (!e->length || http3_number(e->at, e->length, &first) != e->length) return HTTP3_FRAME_ERROR;
	h->conn->retired = true;
	for (struct connection_request *p = connection_at(h->all, h->conn, h->conn->head), *after; p; p = after) {
		struct stream *s = stream_of(h, p);
		after = connection_at(h->all, h->conn, p->next);
		if (s->number != NO_STREAM && (uint64_t)s->number < first) continue;
		if (s->number != NO_STREAM) quic_cancel(h->quic, s->number, HTTP3_REQUEST_CANCELLED);
		give_back(h, s);
	}
	return 0;
}

static uint64_t take_control(struct http3_session *h, struct server_stream *s, const char *data, size_t length) {
	uint64_t error = 0;
	while (length && !error) {
		struct http3_event e;
		const size_t n = http3_frames_take(&s->frames, data, length, &e);
		data += n;
		length -= n;
		if (e.kind == HTTP3_NOTHING) continue;
		if (e.kind == HTTP3_WRONG) error = e.error;
		else if (e.kind == HTTP3_CONTENT || e.type == HTTP3_HEADERS) error = HTTP3_FRAME_UNEXPECTED;
		else if (s->settled == (e.type == HTTP3_SETTINGS))
			error = s->settled ? HTTP3_FRAME_UNEXPECTED : HTTP3_MISSING_SETTINGS;
		else if (e.type == HTTP3_GOAWAY) error = take_goaway(h, &e);
		s->settled = true;
	}
	return error;
}

/* Takes bytes of a stream that the server has opened. */
static uint64_t take_from_server(struct http3_session *h, int64_t number, const char *data, size_t length, bool ends) {
	struct server_stream *s = &h->server[number / 4]; /* RFC 9000, section 2.1 */
	for (; length && s->type == NOT_KNOWN_YET; data++, length--) {
		uint64_t type;
		s->start[s->started++] = *data;
		if (http3_number(s->start, s->started, &type)) s->type = type < UNKNOWN ? (enum stream_type)type : UNKNOWN;
	}
	if (s->type == PUSH) return HTTP3_ID_ERROR; /* none was allowed (section 4.6) */
	if (ends && s->type <= DECODER) return HTTP3_CLOSED_CRITICAL_STREAM;
	return s->type == CONTROL ? take_control(h, s, data, length) : 0; /* what QPACK says is of the dynamic table */
}

/* Returns the stream, unless its request has ended. */
static struct stream *known(int64_t number, void *request) {
	struct stream *s = request;
	return s && s->number == number ? s : NULL;
}

static uint64_t received(void *owner, int64_t number, void *request, const char *data, size_t length, bool ends) {
	struct http3_session *h = owner;
	struct stream *s = known(number, request);
	if (s) return take_response(h, s, data, length, ends);
	return number & 2 ? take_from_server(h, number, data, length, ends) : 0;
}

static void reset(void *owner, int64_t number, void *request, uint64_t error) {
	struct http3_session *h = owner;
	struct stream *s = known(number, request);
	if (s && error == HTTP3_REQUEST_REJECTED) give_back(h, s);
	else if (s) fail_stream(h, s, error == HTTP3_NO_ERROR ? FAILURE_SHORT : FAILURE_RESET);
}

static ssize_t receive(struct connections *c, struct connection *conn) {
	const ssize_t n = quic_receive(session_of(conn)->quic);
	if (n > 0) c->filling->count[COUNT_BYTES] += (uint64_t)n;
	if (n != -1 && conn->retired && !conn->assigned) connection_close(c, conn);
	return n;
}

/* --- sending --- */

/* Sets what is left of a request. Returns false if it waits: for another stream, or for more bytes of this one. */
static bool rest_of(struct http3_session *h, struct connection_request *p, struct quic_piece *piece) {
	const struct target_bytes *head = &h->all->plan->target[p->target].stream, *content = &h->all->plan->content;
	struct stream *s = stream_of(h, p);
	if (s->blocked) return false;
	if (s->number == NO_STREAM && (s->number = quic_open(h->quic, s)) == NO_STREAM) return false;
	const bool in_head = p->partly < head->length;
	const struct target_bytes *part = in_head ? head : content;
	const size_t skip = in_head ? p->partly : p->partly - head->length;
	*piece = (struct quic_piece){.stream = s->number,
								 .at = part->at + skip,
								 .length = part->length - skip,
								 .ends = !in_head || !content->length,
								 .request = s};
	return true;
}

static bool next(void *owner, struct quic_piece *piece) {
	struct http3_session *h = owner;
	struct connection_request *p;
	if (h->control != NO_STREAM) {
		*piece = (struct quic_piece){.stream = h->control,
									 .at = control_bytes + h->control_sent,
									 .length = sizeof control_bytes - h->control_sent};
		return true;
	}
	for (unsigned i = 0, left = h->writing; left; i++) {
		if (!h->stream[i].writing) continue;
		if (rest_of(h, request_of(h, &h->stream[i]), piece)) return true;
		left--;
	}
	return (p = connection_at(h->all, h->conn, h->conn->unsent)) && rest_of(h, p, piece);
}

static void sent(void *owner, const struct quic_piece *piece, size_t n) {
	struct http3_session *h = owner;
	struct stream *s = piece->request;
	if (!s) {
		h->control_sent += (unsigned)n;
		if (h->control_sent == sizeof control_bytes) h->control = NO_STREAM;
		return;
	}
	struct connection_request *p = request_of(h, s);
	const bool all = piece->ends && n == piece->length;
	if (!p->sent) connection_sent(h->all, h->conn, p);
	p->partly += (uint32_t)n;
	h->writing += (unsigned)!all - (unsigned)s->writing;
	s->writing = !all;
}

static void block(void *owner, int64_t number, void *request, bool blocked) {
	struct stream *s = known(number, request);
	(void)owner;
	if (s) s->blocked = blocked;
}

static int send_requests(struct connections *c, struct connection *conn) {
	(void)c;
	return quic_send(session_of(conn)->quic);
}

/* Packets are to be acknowledged, too. */
static bool wants_to_send(const struct connection *conn) {
	(void)conn;
	return true;
}

static bool cancel(struct connection *conn, const struct connection_request *p) {
	struct http3_session *h = session_of(conn);
	struct stream *s = stream_of(h, p);
	quic_cancel(h->quic, s->number, HTTP3_REQUEST_CANCELLED);
	end_stream(h, s);
	return true;
}

static int expire(struct connection *conn) { return quic_expire(session_of(conn)->quic); }

static const char *why(const struct connection *conn) { return quic_why(session_of(conn)->quic); }

/* --- beginning and end --- */

static void opened(void *owner, const tls_stream *tls) {
	struct http3_session *h = owner;
	h->all->filling->count[COUNT_CONNECTED]++;
	connection_secured(h->all, h->conn, tls);
	h->control = quic_open_one_way(h->quic);
}

static void allowed(void *owner, uint64_t streams) {
	const struct http3_session *h = owner;
	const unsigned depth = h->all->plan->depth;
	h->conn->room = (uint16_t)(streams < depth ? streams : depth);
	if (!h->conn->room) h->conn->room = 1; /* it waits */
}

static void session_free(void *session) {
	struct http3_session *h = session;
	quic_free(h->quic);
	for (unsigned i = 0; i < h->all->plan->depth; i++) http3_frames_free(&h->stream[i].frames);
	for (unsigned i = 0; i < QUIC_SERVER_STREAMS; i++) http3_frames_free(&h->server[i].frames);
	free(h);
}

static void *session_new(struct connections *c, struct connection *conn) {
	const unsigned depth = c->plan->depth;
	struct http3_session *h = calloc(1, sizeof *h + depth * sizeof *h->stream);
	if (!h) return NULL;
	h->all = c;
	h->conn = conn;
	h->control = NO_STREAM;
	for (unsigned i = 0; i < depth; i++) h->stream[i] = (struct stream){.number = NO_STREAM, .place = (uint16_t)i};
	for (unsigned i = 0; i < QUIC_SERVER_STREAMS; i++) h->server[i].type = NOT_KNOWN_YET;
	if ((h->quic = quic_new(c->quic, c->loop, conn->fd, &conn->alarm, h))) return h;
	free(h);
	return NULL;
}

static struct quic_thread *thread_new(struct connections *c) {
	static const struct quic_owner calls = {.opened = opened,
											.allowed = allowed,
											.received = received,
											.reset = reset,
											.next = next,
											.sent = sent,
											.block = block};
	const struct plan *p = c->plan;
	const struct quic_settings settings = {.tls = c->tls,
										   .now_ns = &c->now_ns,
										   .timeout_ns = p->timeout_ns,
										   .window = p->window,
										   .window_all = p->window_all,
										   .uploads = p->content.length};
	return quic_thread_new(&settings, &calls);
}

const struct connection_protocol http3 = {.thread_new = thread_new,
										  .session_new = session_new,
										  .session_free = session_free,
										  .send = send_requests,
										  .wants_to_send = wants_to_send,
										  .receive = receive,
										  .expire = expire,
										  .why = why,
										  .cancel = cancel};
