/* http3_send.c - see session.h: frames header blocks and content of the streams, in their turns, and keeps them until
 * they are acknowledged. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/hpack/qpack.h"
#include "gatling/http3/http3.h"
#include "gatling/http3/session.h"

enum {
	PREFIX = 2,      /* bytes before the lines of a field section, which are 0 without a dynamic table */
	DATA_HEADER = 3, /* of a DATA frame: its type, and a length of two bytes */
	LENGTH_2 = 0x40, /* the first byte of such a length, */
	LENGTH_4 = 0x80  /* and of one of four bytes */
};

/* --- chunks --- */

static struct http3_chunk *new_chunk(size_t room) {
	struct http3_chunk *c = malloc(sizeof *c + room);
	if (c) *c = (struct http3_chunk){0};
	return c;
}

/* Appends a chunk of length bytes to what is to be sent, or frees it if there are none. */
static void add_chunk(struct http3 *h, struct http3_stream *q, struct http3_chunk *c, size_t length) {
	if (!length) {
		free(c);
		return;
	}
	c->length = (uint32_t)length;
	h->unacknowledged += length;
	if (q->last) q->last->next = c;
	else q->first = c;
	q->last = c;
	if (!q->unsent) q->unsent = c;
}

static void free_first(struct http3 *h, struct http3_stream *q) {
	struct http3_chunk *c = q->first;
	q->first = c->next;
	if (!q->first) q->last = NULL;
	if (q->unsent == c) q->unsent = c->next;
	h->unacknowledged -= c->length;
	free(c);
}

void http3_free_chunks(struct http3 *h, struct http3_stream *q) {
	while (q->first) free_first(h, q);
}

bool http3_put(struct http3 *h, struct http3_stream *q, struct slice bytes) {
	struct http3_chunk *c = new_chunk(bytes.length);
	if (!c) return false;
	memcpy(c->bytes, bytes.at, bytes.length);
	add_chunk(h, q, c, bytes.length);
	return true;
}

char *http3_put_integer(char *at, uint64_t n) {
	if (n >= 1 << 14) {
		*at++ = (char)(LENGTH_4 | n >> 24);
		*at++ = (char)(n >> 16);
		*at++ = (char)(n >> 8);
	} else {
		*at++ = (char)(LENGTH_2 | n >> 8);
	}
	*at++ = (char)n;
	return at;
}

/* Writes the type of a frame, which is less than 64, and the length of its payload. Returns the end of both. */
static char *put_header(char *at, uint64_t type, size_t length) {
	*at++ = (char)type;
	return http3_put_integer(at, length);
}

bool http3_put_frame(struct http3 *h, struct http3_stream *q, uint64_t type, struct slice payload) {
	struct http3_chunk *c = new_chunk(1 + 4 + payload.length);
	if (!c) return false;
	char *at = put_header(c->bytes, type, payload.length);
	memcpy(at, payload.at, payload.length);
	add_chunk(h, q, c, (size_t)(at - c->bytes) + payload.length);
	return true;
}

/* --- responses --- */

/* Returns whether there is something to be sent on the stream before its batch. */
static bool has_unsent(const struct http3_stream *q) { return q->unsent || (q->ends && !q->end_sent); }

/* Ends the server's side after what is to be sent. */
static void end_after(struct stream *s) {
	struct http3_stream *q = s->own;
	q->ends = s->ended = true;
}

/* Resets a stream whose response cannot be completed. */
static void give_up(struct http3 *h, struct stream *s) { http3_reset(h, s->own, HTTP3_INTERNAL_ERROR); }

/* Ends a stream whose proxied request has ended: sends its end, resets it (a tunnel as RFC 9220, section 3, says), or
 * answers that it could not be passed on. */
static void end_relay(struct http3 *h, struct stream *s) {
	switch (s->relayed) {
	case RELAY_WAITS: break;
	case RELAY_DONE: end_after(s); break;
	case RELAY_BROKEN:
		http3_reset(h, s->own, s->exchange->tunnel ? HTTP3_REQUEST_CANCELLED : HTTP3_INTERNAL_ERROR);
		break;
	case RELAY_FAILED: stream_relay_failed(s); break;
	}
}

/* Moves a header block from the batch to a chunk, as a HEADERS frame. Returns the end of it. */
static char *move_block(struct http3 *h, struct stream *s, char *at) {
	at = put_header(at, HTTP3_FRAME_HEADERS, PREFIX + s->block_length);
	*at++ = 0;
	*at++ = 0;
	return at + iob_take(h->context->loop, -1, s->batch->iob, at, s->block_length);
}

/* Moves content from the batch to a chunk, as a DATA frame. Returns the end of it, or NULL with errno. */
static char *move_content(struct http3 *h, struct stream *s, char *at, size_t most) {
	const int fd = s->holds ? h->transport->reader(h->streams.connection) : -1;
	if (s->holds && fd == -1) return NULL;
	const ssize_t n = iob_take(h->context->loop, fd, s->batch->iob, at + DATA_HEADER, most);
	if (n == -1) return NULL;
	return put_header(at, HTTP3_FRAME_DATA, (size_t)n) + n;
}

static size_t least(uint64_t a, size_t b) { return a < b ? (size_t)a : b; }

/* Moves what comes next in the batch of a stream to a chunk: a header block and the content behind it, or content.
 * Returns false if there was nothing, since it has to be read from the disk, or the stream has been reset. */
static bool fill(struct http3 *h, struct stream *s) {
	struct http3_stream *q = s->own;
	const size_t block = s->block_length, content = least(iob_bytesleft(s->batch->iob) - block, HTTP3_DATA);
	const size_t room = (block ? 1 + 4 + PREFIX + block : 0) + DATA_HEADER + content;
	struct http3_chunk *c = new_chunk(room);
	if (!c) {
		h->streams.failed = true;
		return false;
	}
	char *at = c->bytes;
	if (block) {
		at = move_block(h, s, at);
		stream_sent(s);
	}
	/* after a block, the batch of a proxied request may be another one, or gone */
	if (!s->ended && s->batch && iob_bytesleft(s->batch->iob) && (!block || !stream_is_passed_on(s))) {
		char *end = move_content(h, s, at, content);
		if (!end && errno != EAGAIN) {
			free(c);
			give_up(h, s);
			return false;
		}
		if (end) stream_sent(s);
		else stream_postpone(s);
		if (end) at = end;
	}
	add_chunk(h, q, c, (size_t)(at - c->bytes));
	q->ends |= s->ended;
	if (s->batch && s->batch->sampled) response_batch_time(s->batch, s->ended);
	stream_account(s);
	return has_unsent(q);
}

/* Returns the most urgent stream with something to send. */
static struct stream *next_stream(struct http3 *h) {
	struct streams *t = &h->streams;
	for (struct stream *s = t->first; s; s = s->next) {
		const struct http3_stream *q = s->own;
		if (has_unsent(q) ? !q->blocked : stream_can_send(s)) return s;
	}
	return NULL;
}

static bool make_piece(struct http3_piece *piece, struct http3_stream *q) {
	const struct http3_chunk *c = q->unsent;
	*piece = (struct http3_piece){.stream = q, .id = q->id, .at = ""};
	if (c) {
		piece->at = c->bytes + c->sent;
		piece->length = c->length - c->sent;
	}
	piece->ends = q->ends && (!c || !c->next);
	return true;
}

bool http3_next(struct http3 *h, struct http3_piece *piece) {
	struct streams *t = &h->streams;
	struct stream *s;
	if (h->own && h->own->unsent && !h->own->blocked) return make_piece(piece, h->own);
	streams_answer_waiting(t);
	while (!t->failed && h->unacknowledged < HTTP3_UNACKNOWLEDGED && (s = next_stream(h))) {
		struct http3_stream *q = s->own;
		if (has_unsent(q)) return make_piece(piece, q);
		if (!s->batch) end_relay(h, s);
		else if (fill(h, s)) return make_piece(piece, q);
	}
	return false;
}

void http3_sent(struct http3 *h, const struct http3_piece *piece, size_t n) {
	struct http3_stream *q = piece->stream;
	h->streams.progress |= n > 0;
	if (q->unsent) {
		q->unsent->sent += (uint32_t)n;
		while (q->unsent && q->unsent->sent == q->unsent->length) q->unsent = q->unsent->next;
	}
	if (n < piece->length || !piece->ends) return;
	q->end_sent = true;
	if (q->stream &&
		(q->stream->receiving || q->stream->discards)) { /* RFC 9114, section 4.1: the rest is not needed */
		h->transport->stop(h->streams.connection, q->id, HTTP3_NO_ERROR);
		q->deaf = true;
	}
	if (q->stream) stream_close(q->stream);
}

void http3_give_up(struct http3 *h, struct http3_stream *q) {
	if (q->stream) stream_close(q->stream);
	q->ends = false;
	for (struct http3_chunk *c = q->unsent; c; c = c->next) { /* what was sent stays until it is acknowledged */
		h->unacknowledged -= c->length - c->sent;
		c->length = c->sent;
	}
	q->unsent = NULL;
	q->deaf = true;
}

void http3_acknowledged(struct http3 *h, struct http3_stream *q, uint64_t n) {
	h->streams.progress = true;
	h->transferred += n;
	while (q->first && (n || !q->first->length)) {
		struct http3_chunk *c = q->first;
		const uint64_t here = c->sent - c->acknowledged < n ? c->sent - c->acknowledged : n;
		c->acknowledged += (uint32_t)here;
		n -= here;
		if (c->acknowledged < c->length || c == q->unsent) break;
		free_first(h, q);
	}
}

void http3_block(struct http3_stream *q, bool blocked) { q->blocked = blocked; }

/* --- windows, and what else HTTP/3 does in its own way --- */

void http3_make_room(struct http3 *h) {
	struct streams *t = &h->streams;
	if (!t->room_changed) return;
	t->room_changed = false;
	for (struct http3_stream *q = h->all; q; q = q->next) {
		const uint64_t held = q->stream ? stream_held(q->stream) : 0;
		if (q->owed <= held) continue;
		h->transport->consumed(t->connection, q->id, q->owed - held);
		q->owed = held;
	}
	streams_feed(t);
}

static void opened(struct stream *s) { ((struct http3_stream *)s->own)->stream = s; }

static void closed(struct stream *s) { ((struct http3_stream *)s->own)->stream = NULL; }

/* How large the window is, only the library knows. */
static size_t stream_room(const struct stream *s) {
	const struct http3_stream *q = s->own;
	return q->blocked ? 0 : SIZE_MAX;
}

static bool takes(const struct streams *t) { return http3_of(t)->unacknowledged < HTTP3_UNACKNOWLEDGED; }

static bool receives(const struct streams *t) {
	(void)t;
	return true;
}

const struct streams_protocol http3_protocol = {.carrier = &streams_http3,
												.status = qpack_status,
												.fields = qpack_fields,
												.opened = opened,
												.closed = closed,
												.stream_room = stream_room,
												.takes = takes,
												.receives = receives};
