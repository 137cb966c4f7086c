/* http2_request.c - see session.h: handles the frames of requests, which are header blocks and content. */
#include <stdlib.h>

#include "gatling/base/workspace.h"
#include "gatling/http2/http2.h"
#include "gatling/http2/session.h"

/* Does what a result of streams/ asks for. Returns HTTP2_NO_ERROR, or the error that ends the session. */
static enum http2_error conclude(struct http2 *h, uint64_t id, enum streams_taken taken, struct http2_output *out) {
	switch (taken) {
	case STREAMS_TAKEN: break;
	case STREAMS_MALFORMED: return http2_reset(h, (uint32_t)id, HTTP2_PROTOCOL_ERROR, out);
	case STREAMS_REFUSED: return http2_reset(h, (uint32_t)id, HTTP2_REFUSED_STREAM, out);
	case STREAMS_TOO_MUCH: return http2_reset(h, (uint32_t)id, HTTP2_ENHANCE_YOUR_CALM, out);
	case STREAMS_NO_MEMORY: return HTTP2_INTERNAL_ERROR;
	}
	return HTTP2_NO_ERROR;
}

static enum http2_error answer_request(struct http2 *h, struct stream_request *asked, int status,
									   struct http2_output *out) {
	struct response r;
	bool continues;
	const enum exchange_next next = streams_decide(asked, status, &r, &continues);
	if (continues) http2_continue(h, (uint32_t)asked->id, out);
	const bool ok = next == EXCHANGE_ANSWERED ? http2_answer(h, asked, &r, out) : streams_keep(&h->streams, asked, &r);
	if (asked->exchange.counted) /* it was answered at once */
		limits_return_requests(h->context->exchanges->limits, &asked->client, 1);
	return ok ? HTTP2_NO_ERROR : HTTP2_INTERNAL_ERROR;
}

/* --- header blocks --- */

/* Decodes the fields of a block. Returns 0, 431, or a negative error. */
static int decode(struct request_fields *fields, nghttp2_hd_inflater *inflater, const unsigned char *block,
				  size_t length) {
	int flags = 0;
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, block, length, 1);
		if (n < 0) return -HTTP2_COMPRESSION_ERROR;
		block += n;
		length -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT &&
			!request_fields_add(fields, (struct slice){.at = (char *)nv.name, .length = nv.namelen},
								(struct slice){.at = (char *)nv.value, .length = nv.valuelen}))
			return 431;
	}
	nghttp2_hd_inflate_end_headers(inflater);
	return 0;
}

int http2_request_decode(nghttp2_hd_inflater *inflater, const unsigned char *block, size_t length, bool trailers,
						 bool passes, char *text, struct request *request, struct priority *priority) {
	struct request_fields fields = {.version = SLICE(" HTTP/2.0"), .trailers = trailers, .passes = passes};
	request_fields_begin(&fields, request, priority, text);
	const int error = decode(&fields, inflater, block, length), status = request_fields_end(&fields, !error);
	return error ? error : status;
}

/* Handles a complete header block: a request, or trailer fields. open: the stream, if it is open. */
static enum http2_error take_block(struct http2 *h, uint32_t id, struct stream *open, unsigned flags,
								   const unsigned char *block, size_t length, struct http2_output *out) {
	char *const text = WORKSPACE(REQUEST_TEXT);
	struct request request;
	struct stream_request asked;
	asked.id = id;
	asked.priority = PRIORITY_DEFAULT;
	asked.receiving = !(flags & FRAME_FLAG_END_STREAM);
	bool ignored = !open && http2_was_reset(h, id); /* trailers, or after the GOAWAY: decoded, but not answered */
	if (!open && !ignored && h->unopened) unopened_take(&h->unopened, id, &asked.priority);
	int status = http2_request_decode(h->inflater, block, length, open, h->context->exchanges->upstreams, text,
									  &request, &asked.priority);
	if (status == 431) {
		if (!open && !ignored) http2_refuse_fields(h, id, out);
		return HTTP2_ENHANCE_YOUR_CALM;
	}
	if (status < 0 && status != REQUEST_MALFORMED) return (enum http2_error) - status;
	if (ignored) return HTTP2_NO_ERROR;
	if (open && status == REQUEST_MALFORMED) return http2_reset(h, id, HTTP2_PROTOCOL_ERROR, out);
	if (open) return conclude(h, id, stream_take_trailers(open, request.lines, !asked.receiving), out);
	/* the memory may grow, see STREAMS_PASSED_CONTENT; that of answers has a limit of its own */
	const bool full = http2_memory(h) > h->context->memory_max / 2 + h->streams.share.held;
	const enum streams_taken taken = streams_take_request(&h->streams, &asked, &request, status, full);
	return taken == STREAMS_TAKEN ? answer_request(h, &asked, status, out) : conclude(h, id, taken, out);
}

/* Checks whether a header block may open this stream, or continue it (section 5.1.1): then *open is that. Returns
 * HTTP2_NO_ERROR, or the error that ends the session. */
static enum http2_error check_stream_id(struct http2 *h, uint32_t id, struct stream **open) {
	struct stream *s = *open = id > h->highest ? NULL : stream_find(&h->streams, id);
	if (id % 2 == 0 || (id < h->highest && !s && !http2_was_reset(h, id))) return HTTP2_PROTOCOL_ERROR;
	if ((s && !s->receiving && !s->discards) || (!s && id == h->highest && !http2_was_reset(h, id)))
		return HTTP2_STREAM_CLOSED;
	if (id > h->highest) http2_note_highest(h, id);
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
	struct stream *open;
	size_t padding = 0, skipped = 0;
	const int64_t since_ns = h->head_since_ns;
	h->head_since_ns = 0;
	if (f->flags & FRAME_FLAG_PADDED) padding = f->length ? f->payload[skipped++] : FRAME_PAYLOAD_MAX;
	if (f->flags & FRAME_FLAG_PRIORITY) skipped += FRAME_PRIORITY_LENGTH;
	enum http2_error error = check_stream_id(h, f->stream, &open);
	if (error) return error;
	if (padding + skipped > f->length) return HTTP2_PROTOCOL_ERROR;
	const unsigned char *block = f->payload + skipped;
	size_t length = f->length - skipped - padding;
	/* a stream cannot depend on itself (RFC 7540, section 5.3.1) */
	if (f->flags & FRAME_FLAG_PRIORITY && (frame_get_32(block - FRAME_PRIORITY_LENGTH) & HTTP2_WINDOW_MAX) == f->stream)
		return HTTP2_PROTOCOL_ERROR;
	if (f->flags & FRAME_FLAG_END_HEADERS) return take_block(h, f->stream, open, f->flags, block, length, out);
	h->block_length = 0;
	h->block_stream = f->stream;
	h->block_since_ns = since_ns ? since_ns : h->context->exchanges->site->now_ns;
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
	error = take_block(h, id, stream_find(&h->streams, id), h->block_flags, block, length, out);
	free(block);
	return error;
}

/* --- content of requests --- */

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
	if (s->receive_window < 0) return http2_reset(h, f->stream, HTTP2_FLOW_CONTROL_ERROR, out);
	const struct slice content = {.at = (const char *)f->payload + (padding > 0), .length = f->length - padding};
	const enum streams_taken taken = stream_take_content(s, content, ends);
	if (taken == STREAMS_TAKEN && !ends && !stream_is_passed_on(s) && !s->early)
		http2_open_window(h, f->stream, &s->receive_window, HTTP2_WINDOW_DEFAULT, out);
	return conclude(h, f->stream, taken, out);
}
