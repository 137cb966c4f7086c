/* http2_stream.c - see http2.h and http2_stream.h: answers become frames. */
#include "gatling/http2_stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "gatling/hpack.h"
#include "gatling/message.h"

/* --- streams --- */

static void link_stream(struct http2 *h, struct stream *s) {
	struct streams *list = &h->streams[s->priority.urgency];
	s->next = NULL;
	s->previous = list->last;
	if (list->last) list->last->next = s;
	else list->first = s;
	list->last = s;
}

static void unlink_stream(struct http2 *h, struct stream *s) {
	struct streams *list = &h->streams[s->priority.urgency];
	if (s->previous) s->previous->next = s->next;
	else list->first = s->next;
	if (s->next) s->next->previous = s->previous;
	else list->last = s->previous;
	assert(list->first != s && list->last != s);
}

struct stream *stream_find(const struct http2 *h, uint32_t id) {
	for (int i = 0; i < URGENCIES && h->open; i++)
		for (struct stream *s = h->streams[i].first; s; s = s->next)
			if (s->id == id) return s;
	return NULL;
}

void stream_cut(struct http2 *h, uint32_t id) { h->cut[h->cuts++ % CUT_REMEMBERED] = id; }

void stream_set_priority(struct http2 *h, struct stream *s, struct priority priority) {
	unlink_stream(h, s);
	s->priority = priority;
	link_stream(h, s);
}

struct waiting {
	struct waiter waiter;
	struct http2 *http2;
	struct stream *stream;
	struct request *request;
	size_t size;
	unsigned waits;
	int64_t started_ns;
};

static void end_waiting(struct waiting *w) {
	waiter_leave(&w->waiter);
	w->http2->waiting_size -= w->size;
	w->stream->waiting = NULL;
	free(w->request);
	free(w);
}

void stream_free(struct http2 *h, struct stream *s) {
	unlink_stream(h, s);
	if (s->waiting) end_waiting(s->waiting);
	if (s->x) {
		exchange_log(h->worker, s->x);
		exchange_give_back(h->worker, s->x);
	}
	free(s);
	h->open--;
}

/* --- frames --- */

void output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags, uint32_t stream,
				  const void *payload, size_t length) {
	if (output_room(out) < FRAME_HEADER + length) {
		h->failed = h->draining = true;
		return;
	}
	out->at = frame_header(out->at, length, type, flags, stream);
	if (length) memcpy(out->at, payload, length);
	out->at += length;
}

void output_number(struct http2 *h, struct http2_output *out, enum frame_type type, uint32_t stream, uint32_t number) {
	char payload[4];
	put_32(payload, number);
	output_frame(h, out, type, 0, stream, payload, sizeof payload);
}

/* --- answers --- */

/* What the next block has to begin with; the bytes written. */
static size_t put_table_size(struct http2 *h, char *at) {
	size_t n = h->shrink_table;
	if (n) *at = 0x20; /* dynamic table size update: 0 */
	h->shrink_table = false;
	return n;
}

static char *put(char *at, struct slice s) {
	memcpy(at, s.at, s.length);
	return at + s.length;
}

/* The block of any response, into the batch. false: no memory. */
static bool write_block(struct http2 *h, struct response *r, struct stream *s, uint64_t *content_length) {
	char lines[MESSAGE_FIELDS_MAX];
	struct slice server_date = h->worker->server_date_block[h->secure];
	size_t length = message_fields(r, lines, content_length);
	char *start = iob_reserve(s->x->batch, HPACK_STATUS + server_date.length + hpack_bound(length));
	if (!start || !length) return false;
	char *at = put(start + hpack_status(r->status, start), server_date);
	at += hpack_fields((struct slice){.at = lines, .length = length}, at);
	s->block_length = (size_t)(at - start);
	iob_commit(s->x->batch, s->block_length);
	return true;
}

static void note(const struct http2 *h, struct exchange *x, const struct request *q, const struct response *r,
				 uint64_t bytes) {
	const struct access access = {.peer = &h->peer, .request = q, .user = r->user, .status = r->status, .bytes = bytes};
	exchange_note(h->worker, x, &access);
}

static struct stream *open_stream(struct http2 *h, const struct question *q) {
	struct stream *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->id = q->id;
	s->send_window = h->initial_window;
	s->receive_window = WINDOW_DEFAULT;
	s->priority = q->priority;
	s->receiving = q->receiving;
	s->cut = q->cut;
	s->has_length = request_has(q->request, FIELD_CONTENT_LENGTH);
	s->expected = q->request->content_length;
	link_stream(h, s);
	h->open++;
	return s;
}

/* Gives the stream its answer; takes file and source over. false: no memory, and the stream is gone. */
static bool fill_stream(struct http2 *h, struct stream *s, const struct request *q, struct response *r) {
	uint64_t length = 0;
	bool head_only = q->method == METHOD_HEAD, ok = (s->x = exchange_take(h->worker)) && write_block(h, r, s, &length);
	if (!ok || head_only) message_drop(r);
	else ok = message_content(s->x->batch, r) == 0;
	if (ok) note(h, s->x, q, r, head_only ? 0 : length);
	else stream_free(h, s);
	return ok;
}

static bool answer_later(struct http2 *h, const struct question *q, struct response *r) {
	struct stream *s = open_stream(h, q);
	if (s) return fill_stream(h, s, q->request, r);
	message_drop(r);
	return false;
}

/* --- waiting for a job --- */

struct arrival stream_arrival(const struct http2 *h) {
	return (struct arrival){
		.peer = &h->peer, .port = h->port, .secure = h->secure, .patient = h->waiting_size < HTTP2_WAITING};
}

/* What the answer took so long for is there now: it is asked for anew. */
static void resume(struct waiter *waiter) {
	struct waiting *waiting = (struct waiting *)waiter;
	struct http2 *h = waiting->http2;
	struct stream *s = waiting->stream;
	struct worker *w = h->worker;
	struct conn *conn = io_cookie(w->loop, h->fd);
	struct arrival arrival = stream_arrival(h);
	struct response r;
	if (h->failed) { /* the connection is being closed */
		stream_free(h, s);
		return;
	}
	arrival.patient &= waiting->waits < WAITS_MAX;
	answer(&w->content, waiting->request, &arrival, &r);
	if (!r.status) {
		waiting->waits++;
		job_wait(r.job, waiter);
		return;
	}
	struct request *request = waiting->request;
	int64_t started_ns = waiting->started_ns;
	waiting->request = NULL;
	end_waiting(waiting);
	bool answered = fill_stream(h, s, request, &r);
	if (answered) s->x->started_ns = started_ns;
	free(request);
	if (answered) conn_writable(w, conn);
	else conn_close(w, conn);
}

bool stream_wait(struct http2 *h, const struct question *q, struct job *job) {
	struct waiting *waiting = calloc(1, sizeof *waiting);
	struct request *request = waiting ? request_keep(q->request, &waiting->size) : NULL;
	struct stream *s = request ? open_stream(h, q) : NULL;
	if (!s) {
		free(request);
		free(waiting);
		return false;
	}
	waiting->waiter.resume = resume;
	waiting->http2 = h;
	waiting->stream = s;
	waiting->request = request;
	waiting->started_ns = io_now_ns(h->worker->loop);
	h->waiting_size += waiting->size;
	s->waiting = waiting;
	h->progress = true;
	job_wait(job, &waiting->waiter);
	return true;
}

/* --- at once --- */

/* Whether a whole file in memory can be sent on the spot: nobody waits who should come first, and there is room. */
static bool can_answer_at_once(const struct http2 *h, const struct question *q, const struct response *r,
							   const struct slice *content, size_t room) {
	size_t overhead = 2 * FRAME_HEADER + 1 + HPACK_STATUS + h->worker->server_date_block[h->secure].length;
	if (h->open || q->receiving || r->status != 200 || !r->file || r->lines.length) return false;
	if (q->request->method != METHOD_HEAD && !content->at) return false;
	return content->length <= FRAME_PAYLOAD_MAX && (int64_t)content->length <= h->initial_window &&
		   (int64_t)content->length <= h->send_window && overhead + r->file->block.length + content->length <= room;
}

/* Two frame headers, blocks that are ready, and the file. */
static void answer_at_once(struct http2 *h, const struct question *q, struct response *r, struct slice content,
						   struct http2_output *out) {
	char *block = out->at + FRAME_HEADER;
	char *at = block + put_table_size(h, block);
	at = put(at + hpack_status(r->status, at), h->worker->server_date_block[h->secure]);
	at = put(at, r->file->block);
	unsigned flags = FLAG_END_HEADERS | (content.length ? 0 : FLAG_END_STREAM);
	frame_header(out->at, (size_t)(at - block), FRAME_HEADERS, flags, q->id);
	out->at = at;
	if (content.length) output_frame(h, out, FRAME_DATA, FLAG_END_STREAM, q->id, content.at, content.length);
	h->send_window -= (int64_t)content.length;
	h->sent += content.length;
	message_drop(r);
}

static bool log_at_once(struct http2 *h, const struct question *q, const struct response *r, size_t length) {
	struct exchange *x = h->worker->log ? exchange_take(h->worker) : NULL;
	if (!x) return !h->worker->log;
	note(h, x, q->request, r, length);
	exchange_log(h->worker, x);
	exchange_give_back(h->worker, x);
	return true;
}

bool stream_answer(struct http2 *h, const struct question *q, struct response *r, bool blocked,
				   struct http2_output *out) {
	struct slice content = q->request->method == METHOD_HEAD ? (struct slice){0} : message_in_memory(r);
	size_t reserved = FRAMES - HTTP2_BATCH, room = output_room(out); /* for frames that have to be written */
	h->progress = true;
	if (blocked || room < reserved || !can_answer_at_once(h, q, r, &content, room - reserved))
		return answer_later(h, q, r);
	answer_at_once(h, q, r, content, out);
	return log_at_once(h, q, r, content.length);
}

void stream_continue(struct http2 *h, uint32_t id, struct http2_output *out) {
	char block[1 + HPACK_STATUS];
	size_t n = put_table_size(h, block);
	n += hpack_status(100, block + n);
	output_frame(h, out, FRAME_HEADERS, FLAG_END_HEADERS, id, block, n);
}

/* --- streams take turns --- */

static bool can_send(const struct http2 *h, const struct stream *s) {
	if (s->receiving || s->ended || s->waiting) return false;
	return s->block_length || (s->send_window > 0 && h->send_window > 0);
}

/* RFC 9218, section 10: the most urgent first; of those the first that came, which keeps its turn to its end unless it
 * is incremental. */
static struct stream *next_stream(const struct http2 *h) {
	for (int i = 0; i < URGENCIES && h->open; i++)
		for (struct stream *s = h->streams[i].first; s; s = s->next)
			if (can_send(h, s)) return s;
	return NULL;
}

bool http2_sendable(const struct http2 *h) { return !h->failed && next_stream(h); }

/* The header block as a frame, and more if it is long. */
static void produce_block(struct http2 *h, struct stream *s, struct http2_output *out) {
	enum frame_type type = FRAME_HEADERS;
	bool only = iob_bytesleft(s->x->batch) == s->block_length;
	while (s->block_length) {
		size_t n = s->block_length < FRAME_PAYLOAD_MAX ? s->block_length : FRAME_PAYLOAD_MAX - 1;
		unsigned flags =
			(type == FRAME_HEADERS && only ? FLAG_END_STREAM : 0) | (n == s->block_length ? FLAG_END_HEADERS : 0);
		char *payload = out->at + FRAME_HEADER;
		size_t first = type == FRAME_HEADERS ? put_table_size(h, payload) : 0;
		(void)iob_take(h->worker->loop, h->fd, s->x->batch, payload + first, n); /* it is in memory */
		out->at = frame_header(out->at, first + n, type, flags, s->id) + first + n;
		s->block_length -= n;
		type = FRAME_CONTINUATION;
	}
	s->ended = only;
}

static size_t least(size_t a, int64_t b) { return b < (int64_t)a ? (size_t)b : a; }

/* One frame of content. false: the file is being read. */
static bool produce_data(struct http2 *h, struct stream *s, struct http2_output *out) {
	size_t most = least(least(FRAME_PAYLOAD_MAX, s->send_window), h->send_window);
	if (most > output_room(out) - 3 * FRAME_HEADER) most = output_room(out) - 3 * FRAME_HEADER;
	ssize_t n = iob_take(h->worker->loop, h->fd, s->x->batch, out->at + FRAME_HEADER, most);
	if (n == -1 && errno == EAGAIN) return false;
	if (n == -1) { /* the file has become shorter */
		output_number(h, out, FRAME_RST_STREAM, s->id, INTERNAL_ERROR);
		s->ended = true;
		return true;
	}
	s->ended = !iob_bytesleft(s->x->batch);
	out->at = frame_header(out->at, (size_t)n, FRAME_DATA, s->ended ? FLAG_END_STREAM : 0, s->id) + n;
	s->send_window -= n;
	h->send_window -= n;
	h->sent += (uint64_t)n;
	if (s->priority.incremental) stream_set_priority(h, s, s->priority); /* behind the others */
	return true;
}

void http2_produce(struct http2 *h, struct http2_output *out) {
	struct http2_output batch = {.at = out->at, .end = out->at + HTTP2_BATCH};
	struct stream *s;
	if (output_room(out) < HTTP2_BATCH) return;
	while (!h->failed && (s = next_stream(h))) {
		if (output_room(&batch) < 4 * FRAME_HEADER + (s->block_length ? MESSAGE_FIELDS_MAX : 0)) break;
		if (s->block_length) produce_block(h, s, &batch);
		else if (!produce_data(h, s, &batch)) break;
		h->progress = true;
		if (!s->ended) continue;
		if (s->cut) { /* RFC 9113, section 8.1: the rest is not wanted */
			output_number(h, &batch, FRAME_RST_STREAM, s->id, NO_ERROR);
			stream_cut(h, s->id);
		}
		stream_free(h, s);
	}
	out->at = batch.at;
}
