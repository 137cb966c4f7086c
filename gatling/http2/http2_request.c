/* http2_request.c - see session.h: handles the frames of requests, which are header blocks and content. */
#include <stdlib.h>

#include "gatling/base/workspace.h"
#include "gatling/http2/http2.h"
#include "gatling/http2/request_block.h"
#include "gatling/http2/session.h"

/* Sets *priority to the one that the client sent before it opened the stream, if there is one, and forgets it. */
static void take_unopened_priority(struct http2 *h, uint32_t id, struct priority *priority) {
	struct unopened_priorities *unopened = h->unopened;
	unsigned kept = 0;
	if (!unopened) return;
	for (unsigned i = 0; i < unopened->count; i++) {
		if (unopened->stream[i].id == id) *priority = unopened->stream[i].priority;
		if (unopened->stream[i].id > id)
			unopened->stream[kept++] = unopened->stream[i]; /* streams with lower IDs are closed by now */
	}
	unopened->count = kept;
	if (kept) return;
	free(unopened);
	h->unopened = NULL;
}

static enum http2_error answer_request(struct http2 *h, struct stream_request *asked, int status,
									   struct http2_output *out) {
	struct exchange *x = &asked->exchange;
	const struct request *q = x->request;
	struct response r;
	enum exchange_next next = EXCHANGE_ANSWERED;
	if (status) response_status(&r, status);
	else next = exchange_begin(x, &r);
	const bool answered = next == EXCHANGE_ANSWERED;
	/* RFC 9110, section 10.1.1: a 100 or the final status is sent at once; an upstream decides for itself */
	if (asked->receiving && answered && q->expect_continue) {
		if (r.status < 400) http2_continue(h, (uint32_t)asked->id, out);
		else asked->discards = true;
	}
	asked->discards |= asked->receiving && answered && (r.status == 413 || q->websocket);
	asked->receiving &= !asked->discards;
	const bool ok = answered ? http2_answer(h, asked, &r, out) : streams_keep(&h->streams, asked, &r);
	if (x->counted) /* it was answered at once */
		limits_return_requests(h->context->exchanges->limits, &asked->client, 1);
	return ok ? HTTP2_NO_ERROR : HTTP2_INTERNAL_ERROR;
}

static bool is_connect(const struct request *request) {
	struct slice method = SLICE("CONNECT ");
	return !request->websocket && request->line.length > method.length &&
		   memcmp(request->line.at, method.at, method.length) == 0;
}

/* Refuses a request by a reset of its stream, and logs it. */
static enum http2_error refuse(struct http2 *h, struct stream_request *asked, int status, enum http2_error error,
							   struct http2_output *out) {
	exchange_note(&asked->exchange, NULL, status, (struct slice){0}, 0);
	return http2_reset(h, (uint32_t)asked->id, error, out);
}

/* Returns whether the request may still be passed on, so that its content has to be kept. */
static bool may_be_passed_on(const struct http2 *h, const struct stream *s) {
	return h->context->exchanges->upstreams && stream_waits_for_job(s);
}

/* Sets the framing that the content would have in HTTP/1.1, and whether the client waits for a 100 before it. */
static void set_framing(struct request *q, bool receiving) {
	bool has_length = request_has(q, FIELD_CONTENT_LENGTH);
	if (!receiving || q->websocket) q->framing = BODY_NONE;
	else q->framing = has_length ? BODY_LENGTH : BODY_CHUNKED;
	q->expect_continue &= q->framing != BODY_NONE;
}

/* Passes content on, see stream_relay_put(). It is sent when all frames of this read have been handled. */
static enum http2_error pass_on(struct http2 *h, struct stream *s, struct slice content, const struct slice *trailers,
								struct http2_output *out) {
	h->streams.unflushed = true;
	bool put = stream_relay_put(s, content, trailers);
	return put ? HTTP2_NO_ERROR : http2_reset(h, (uint32_t)s->id, HTTP2_PROTOCOL_ERROR, out);
}

/* Handles the trailer fields of a request, which is complete now. */
static enum http2_error take_trailers(struct http2 *h, struct stream *s, struct slice lines, struct http2_output *out) {
	if (stream_is_passed_on(s)) return pass_on(h, s, (struct slice){0}, &lines, out);
	if (!may_be_passed_on(h, s)) return HTTP2_NO_ERROR;
	s->early_trailers = lines.length;
	return stream_keep_early(s, lines) ? HTTP2_NO_ERROR : HTTP2_INTERNAL_ERROR;
}

/* Handles a complete header block: a request, or trailer fields. */
static enum http2_error take_block(struct http2 *h, uint32_t id, unsigned flags, const unsigned char *block,
								   size_t length, struct http2_output *out) {
	char *const text = WORKSPACE(REQUEST_TEXT);
	struct request request;
	struct stream_request asked;
	asked.id = id;
	asked.priority = PRIORITY_DEFAULT;
	asked.receiving = !(flags & FRAME_FLAG_END_STREAM);
	struct stream *open = stream_find(&h->streams, id);
	bool ignored = !open && http2_was_reset(h, id); /* trailers, or after the GOAWAY: decoded, but not answered */
	if (!open && !ignored) take_unopened_priority(h, id, &asked.priority);
	int status = http2_request_decode(h->inflater, block, length, open, h->context->exchanges->upstreams, text,
									  &request, &asked.priority);
	bool malformed = status == -HTTP2_PROTOCOL_ERROR;
	if (status == 431) {
		if (!open && !ignored) http2_refuse_fields(h, id, out);
		return HTTP2_ENHANCE_YOUR_CALM;
	}
	if (status < 0 && !malformed) return (enum http2_error) - status;
	if (ignored) return HTTP2_NO_ERROR;
	if (open) { /* trailers */
		bool early = asked.receiving || (open->has_length && open->received != open->expected);
		if (malformed || (early && !open->discards)) return http2_reset(h, id, HTTP2_PROTOCOL_ERROR, out);
		open->receiving = false;
		return take_trailers(h, open, request.lines, out);
	}
	asked.client = streams_client(&h->streams, &request);
	streams_begin_exchange(&h->streams, &asked.exchange, &request, &asked.client);
	if (malformed) return refuse(h, &asked, 400, HTTP2_PROTOCOL_ERROR, out);
	if (h->streams.open >= STREAMS_MAX) return refuse(h, &asked, 503, HTTP2_REFUSED_STREAM, out);
	if (!asked.receiving && request.content_length) return refuse(h, &asked, 400, HTTP2_PROTOCOL_ERROR, out);
	if (h->streams.passes && http2_memory(h) > h->context->memory_max / 2) /* it may grow, see STREAMS_PASSED_CONTENT */
		return refuse(h, &asked, 503, HTTP2_REFUSED_STREAM, out);
	set_framing(&request, asked.receiving);
	asked.discards = asked.receiving && (status || is_connect(&request)); /* section 8.5: the data is not content */
	asked.receiving &= !asked.discards;
	return answer_request(h, &asked, status, out);
}

/* Sets h->highest. Clears the bits of the streams up to id in was_reset, where older streams had used them. */
static void note_highest(struct http2 *h, uint32_t id) {
	for (uint32_t n = id; n > h->highest && n > 1 && id - n < 2 * HTTP2_RESETS_REMEMBERED; n -= 2)
		*http2_reset_word(h, n) &= ~http2_reset_bit(n);
	h->highest = id;
}

/* Checks whether a header block may open this stream, or continue it (section 5.1.1). Returns HTTP2_NO_ERROR, or the
 * error that ends the session. */
static enum http2_error check_stream_id(struct http2 *h, uint32_t id) {
	struct stream *s = stream_find(&h->streams, id);
	if (id % 2 == 0 || (id < h->highest && !s && !http2_was_reset(h, id))) return HTTP2_PROTOCOL_ERROR;
	if ((s && !s->receiving && !s->discards) || (!s && id == h->highest && !http2_was_reset(h, id)))
		return HTTP2_STREAM_CLOSED;
	if (id > h->highest) note_highest(h, id);
	if (!h->draining) h->last_stream = h->highest;
	return HTTP2_NO_ERROR;
}

/* Appends part of a header block to h->block. */
static enum http2_error keep_block(struct http2 *h, const unsigned char *part, size_t length) {
	unsigned char *grown = realloc(h->block, h->block_length + length + 1);
	if (!grown) return HTTP2_INTERNAL_ERROR;
	h->block = grown;
	memcpy(h->block + h->block_length, part, length);
	h->block_length += length;
	return HTTP2_NO_ERROR;
}

enum http2_error http2_take_headers(struct http2 *h, const struct frame *f, struct http2_output *out) {
	size_t padding = 0, skipped = 0;
	if (f->flags & FRAME_FLAG_PADDED) padding = f->length ? f->payload[skipped++] : FRAME_PAYLOAD_MAX;
	if (f->flags & FRAME_FLAG_PRIORITY) skipped += FRAME_PRIORITY_LENGTH;
	enum http2_error error = check_stream_id(h, f->stream);
	if (error) return error;
	if (padding + skipped > f->length) return HTTP2_PROTOCOL_ERROR;
	const unsigned char *block = f->payload + skipped;
	size_t length = f->length - skipped - padding;
	/* a stream cannot depend on itself (RFC 7540, section 5.3.1) */
	if (f->flags & FRAME_FLAG_PRIORITY && (frame_get_32(block - FRAME_PRIORITY_LENGTH) & HTTP2_WINDOW_MAX) == f->stream)
		return HTTP2_PROTOCOL_ERROR;
	if (f->flags & FRAME_FLAG_END_HEADERS) return take_block(h, f->stream, f->flags, block, length, out);
	h->block_length = 0;
	h->block_stream = f->stream;
	h->block_flags = f->flags;
	h->continuations = 0;
	return keep_block(h, block, length);
}

enum http2_error http2_take_continuation(struct http2 *h, const struct frame *f, struct http2_output *out) {
	bool ends = f->flags & FRAME_FLAG_END_HEADERS;
	if (!f->length && !ends && http2_count_frame(h, HTTP2_FLOOD_EMPTY)) return HTTP2_ENHANCE_YOUR_CALM;
	if (++h->continuations > HTTP2_CONTINUATIONS_MAX || f->length > HTTP2_BLOCK_MAX - h->block_length)
		return HTTP2_ENHANCE_YOUR_CALM;
	enum http2_error error = keep_block(h, f->payload, f->length);
	if (error || !ends) return error;
	unsigned char *block = h->block;
	uint32_t id = h->block_stream;
	size_t length = h->block_length;
	h->block = NULL;
	h->block_length = h->block_stream = 0;
	error = take_block(h, id, h->block_flags, block, length, out);
	free(block);
	return error;
}

/* --- content of requests: it is counted, and dropped or passed on --- */

enum http2_error http2_take_data(struct http2 *h, const struct frame *f, struct http2_output *out) {
	struct stream *s = stream_find(&h->streams, f->stream);
	size_t padding = f->flags & FRAME_FLAG_PADDED ? (f->length ? f->payload[0] + 1U : FRAME_PAYLOAD_MAX) : 0;
	bool ends = f->flags & FRAME_FLAG_END_STREAM;
	h->receive_window -= f->length;
	if (http2_is_unopened(h, f->stream) || padding > f->length) return HTTP2_PROTOCOL_ERROR;
	if (h->receive_window < 0) return HTTP2_FLOW_CONTROL_ERROR;
	if (f->length == padding && !ends && http2_count_frame(h, HTTP2_FLOOD_EMPTY)) return HTTP2_ENHANCE_YOUR_CALM;
	if (h->context->exchanges->upstreams) h->streams.room_changed = true;
	else http2_open_window(h, 0, &h->receive_window, HTTP2_WINDOW_DEFAULT, out);
	if (s ? s->discards : http2_was_reset(h, f->stream)) return HTTP2_NO_ERROR;
	if (!s || !s->receiving) return http2_reset(h, f->stream, HTTP2_STREAM_CLOSED, out);
	s->receive_window -= f->length;
	s->received += f->length - padding;
	s->receiving = !ends;
	if (s->receive_window < 0) return http2_reset(h, (uint32_t)s->id, HTTP2_FLOW_CONTROL_ERROR, out);
	if (s->has_length && (s->received > s->expected || (ends && s->received != s->expected)))
		return http2_reset(h, (uint32_t)s->id, HTTP2_PROTOCOL_ERROR, out);
	const struct slice content = {.at = (const char *)f->payload + (padding > 0), .length = f->length - padding},
					   no_trailers = {0};
	if (stream_is_passed_on(s)) return pass_on(h, s, content, ends ? &no_trailers : NULL, out);
	if (s->received > BODY_MAX) return http2_reset(h, (uint32_t)s->id, HTTP2_ENHANCE_YOUR_CALM, out);
	if (may_be_passed_on(h, s)) return stream_keep_early(s, content) ? HTTP2_NO_ERROR : HTTP2_INTERNAL_ERROR;
	if (!ends) http2_open_window(h, (uint32_t)s->id, &s->receive_window, HTTP2_WINDOW_DEFAULT, out);
	return HTTP2_NO_ERROR;
}
