/* http2_send.c - see http2.h and session.h: responses become frames: at once if that is possible, or piece by piece,
 * when it is the turn of their streams. */
#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/http2/http2.h"
#include "gatling/http2/session.h"
#include "gatling/site/response.h"

/* --- answers --- */

static const struct ready_block *common_block(const struct http2 *h) {
	return &h->context->common_ready[h->streams.secure];
}

/* Writes the status and the fields that all responses have. */
static char *put_start(struct http2 *h, const struct response *r, char *at) {
	at += hpack_status(r->status, at);
	return ready_block_put(at, common_block(h), h->context->lines, &h->dynamic);
}

/* Writes the header block of a response that goes out before all that are written later. Returns an absent slice
 * without memory. */
static struct slice next_block(struct http2 *h, struct response *r, char *block, uint64_t *content_length) {
	char *const lines = WORKSPACE(RESPONSE_FIELDS_MAX);
	const size_t length = response_fields(r, lines, content_length);
	if (!length) return (struct slice){0};
	char *at = put_start(h, r, block);
	at = shared_lines_put(at, (struct slice){.at = lines, .length = length}, h->context->lines, &h->dynamic);
	return (struct slice){.at = block, .length = (size_t)(at - block)};
}

/* Opens a stream for the response. If out is not blocked and has room, writes the header block at once, since it needs
 * no window. */
static bool answer_later(struct http2 *h, struct stream_request *asked, struct response *r, struct http2_output *out) {
	char *const room = WORKSPACE(STREAMS_BLOCK);
	struct stream *s = stream_open(&h->streams, asked);
	uint64_t length = 0;
	if (!s) {
		response_drop(r);
		return false;
	}
	const size_t most = STREAMS_BLOCK_START + STREAMS_FIELDS(response_fields_room(r));
	const bool now = !out->blocked && !s->receiving &&
					 http2_output_room(out) >= HTTP2_FRAMES - HTTP2_BATCH + http2_block_frames(most);
	const struct slice block = now ? next_block(h, r, room, &length) : streams_block(&h->streams, r, room, &length);
	if (!stream_fill(s, &asked->exchange, r, block, length, now)) return false;
	if (now) http2_output_block(h, out, (uint32_t)s->id, block, s->ended);
	if (s->ended) http2_end_stream(h, s, out);
	return true;
}

static const struct ready_block *ready_of(const struct http2 *h, const struct response *r) {
	return representation_block(r->representation, r->offered, h->context->lines);
}

/* Returns whether a file in memory can be written at once: no other stream is open, and there is room. */
static bool can_answer_at_once(const struct http2 *h, const struct stream_request *asked, const struct response *r,
							   const struct slice *content, size_t room) {
	size_t overhead = 2 * FRAME_HEADER + 1 + HPACK_STATUS + common_block(h)->longest;
	if (h->streams.open || asked->receiving || !response_has_ready_block(r)) return false;
	if (asked->exchange.request->method != METHOD_HEAD && !content->at) return false;
	return content->length <= FRAME_PAYLOAD_MAX && (int64_t)content->length <= h->initial_window &&
		   (int64_t)content->length <= h->send_window && overhead + ready_of(h, r)->longest + content->length <= room;
}

/* Writes two frame headers, blocks that are ready, and the file. */
static void answer_at_once(struct http2 *h, const struct stream_request *asked, struct response *r,
						   struct slice content, struct http2_output *out) {
	const uint32_t id = (uint32_t)asked->id;
	char *block = out->at + FRAME_HEADER;
	char *at = block + http2_put_table_size(h, block);
	at = ready_block_put(put_start(h, r, at), ready_of(h, r), h->context->lines, &h->dynamic);
	unsigned flags = FRAME_FLAG_END_HEADERS | (content.length ? 0 : FRAME_FLAG_END_STREAM);
	frame_header(out->at, (size_t)(at - block), FRAME_HEADERS, flags, id);
	out->at = at;
	if (content.length) http2_output_frame(h, out, FRAME_DATA, FRAME_FLAG_END_STREAM, id, content.at, content.length);
	h->send_window -= (int64_t)content.length;
	h->sent += content.length;
	response_drop(r);
}

/* Counts the times of a response that needed no stream. */
static void count_times(const struct http2 *h) {
	unsigned answers = counters_sample();
	if (!answers) return;
	int64_t ns = io_read_clock() - h->context->exchanges->site->now_ns;
	count_first_byte(ns, answers);
	count_duration(ns, answers);
}

bool http2_answer(struct http2 *h, struct stream_request *asked, struct response *r, struct http2_output *out) {
	struct slice content = asked->exchange.request->method == METHOD_HEAD ? (struct slice){0} : response_in_memory(r);
	size_t reserved = HTTP2_FRAMES - HTTP2_BATCH,
		   room = http2_output_room(out); /* reserved: for frames that must be written */
	h->streams.progress = true;
	if (!out->blocked && room >= reserved && can_answer_at_once(h, asked, r, &content, room - reserved)) {
		answer_at_once(h, asked, r, content, out);
		count_times(h);
		exchange_note(&asked->exchange, NULL, r->status, r->user, content.length);
		return true;
	}
	if (streams_may_hold(&h->streams, streams_hold_of(asked->exchange.request, r)))
		return answer_later(h, asked, r, out);
	return streams_keep(&h->streams, asked, r);
}

void http2_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out) {
	char block[HPACK_STATUS + RESPONSE_COMMON_BLOCK];
	char *end = text_copy(block + hpack_status(431, block), *h->streams.common_block);
	struct slice whole = {.at = block, .length = (size_t)(end - block)};
	struct exchange unknown;
	streams_begin_exchange(&h->streams, &unknown, NULL, &h->streams.peer);
	exchange_note(&unknown, NULL, 431, (struct slice){0}, 0);
	if (http2_output_room(out) >= http2_block_frames(whole.length)) http2_output_block(h, out, id, whole, true);
}

void http2_continue(struct http2 *h, uint32_t id, struct http2_output *out) {
	char block[1 + HPACK_STATUS];
	size_t n = http2_put_table_size(h, block);
	n += hpack_status(100, block + n);
	http2_output_frame(h, out, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, id, block, n);
}

/* --- the turns of streams --- */

/* Ends a stream whose proxied request has ended: sends its last frame, resets it (a tunnel as RFC 8441, section 5,
 * says), or answers that it could not be passed on. */
static void end_relay(struct http2 *h, struct stream *s, struct http2_output *out) {
	const uint32_t id = (uint32_t)s->id;
	switch (s->relayed) {
	case RELAY_WAITS: break;
	case RELAY_DONE:
		http2_output_frame(h, out, FRAME_DATA, FRAME_FLAG_END_STREAM, id, NULL, 0);
		http2_end_stream(h, s, out);
		break;
	case RELAY_BROKEN:
		http2_output_number(h, out, FRAME_RST_STREAM, id, s->exchange->tunnel ? HTTP2_CANCEL : HTTP2_INTERNAL_ERROR);
		http2_note_reset(h, id);
		stream_close(s);
		break;
	case RELAY_FAILED: stream_relay_failed(s); break;
	}
}

static size_t least(size_t a, int64_t b) { return b < (int64_t)a ? (size_t)b : a; }

bool http2_next(struct http2 *h, char *block, struct http2_piece *piece, struct http2_output *out) {
	struct streams *t = &h->streams;
	struct stream *s = NULL;
	http2_make_room(h, out);
	streams_answer_waiting(t);
	while (!t->failed && (s = streams_next(t)) && !s->batch && http2_output_room(out) >= 4 * FRAME_HEADER)
		end_relay(h, s, out);
	if (t->failed || !s || !s->batch) return false;
	size_t room = http2_output_room(out);
	if (room < 4 * FRAME_HEADER + http2_block_frames(s->block_length)) return false;
	*piece = (struct http2_piece){.iob = s->batch->iob, .to = block, .length = s->block_length, .stream = s};
	if (s->block_length) return true;
	piece->to = out->at + FRAME_HEADER;
	piece->length =
		least(least(least(FRAME_PAYLOAD_MAX, s->send_window), h->send_window), (int64_t)(room - 3 * FRAME_HEADER));
	return true;
}

static void write_data(struct http2 *h, struct stream *s, size_t length, struct http2_output *out) {
	const unsigned flags = s->ended ? FRAME_FLAG_END_STREAM : 0;
	out->at = frame_header(out->at, length, FRAME_DATA, flags, (uint32_t)s->id) + length;
	s->send_window -= (int64_t)length;
	h->send_window -= (int64_t)length;
	h->sent += length;
}

void http2_write(struct http2 *h, const struct http2_piece *piece, ssize_t length, struct http2_output *out) {
	struct stream *s = piece->stream;
	const bool block = s->block_length;
	const uint32_t id = (uint32_t)s->id;
	h->streams.progress = true;
	if (length == -1) { /* the file has become shorter */
		http2_output_number(h, out, FRAME_RST_STREAM, id, HTTP2_INTERNAL_ERROR);
		s->ended = true;
	} else {
		stream_sent(s);
		if (block) http2_output_block(h, out, id, (struct slice){.at = piece->to, .length = (size_t)length}, s->ended);
		else write_data(h, s, (size_t)length, out);
	}
	if (s->batch && s->batch->sampled) response_batch_time(s->batch, s->ended);
	if (s->ended) http2_end_stream(h, s, out);
	else stream_account(s);
}
