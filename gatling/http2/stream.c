/* stream.c - see stream.h: the streams of a session, and functions for all frames: output, windows and counts. */
#include "gatling/http2/stream.h"

#include <stdlib.h>

/* Inserts the stream after the others of its urgency. */
static void link_stream(struct http2 *h, struct stream *s) {
	s->previous = h->last;
	while (s->previous && s->previous->priority.urgency > s->priority.urgency) s->previous = s->previous->previous;
	s->next = s->previous ? s->previous->next : h->first;
	*(s->previous ? &s->previous->next : &h->first) = s;
	*(s->next ? &s->next->previous : &h->last) = s;
}

static void unlink_stream(struct http2 *h, struct stream *s) {
	*(s->previous ? &s->previous->next : &h->first) = s->next;
	*(s->next ? &s->next->previous : &h->last) = s->previous;
}

struct stream *stream_find(const struct http2 *h, uint32_t id) {
	struct stream *s = h->first;
	while (s && s->id != id) s = s->next;
	return s;
}

void stream_note_reset(struct http2 *h, uint32_t id) {
	if (id + 2 * HTTP2_RESETS_REMEMBERED > h->highest) *stream_reset_word(h, id) |= stream_reset_bit(id);
}

struct stream *stream_open(struct http2 *h, struct stream_request *asked) {
	struct stream *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->id = asked->id;
	s->send_window = h->initial_window;
	s->receive_window = HTTP2_WINDOW_DEFAULT;
	s->priority = asked->priority;
	s->receiving = asked->receiving;
	s->discards = asked->discards;
	s->client = asked->client;
	s->counted = asked->exchange.counted;
	asked->exchange.counted = false;
	s->has_length = request_has(asked->exchange.request, FIELD_CONTENT_LENGTH);
	s->expected = asked->exchange.request->content_length;
	s->http2 = h;
	link_stream(h, s);
	h->open++;
	count_one(GAUGE_STREAMS);
	return s;
}

void stream_set_priority(struct http2 *h, struct stream *s, struct priority priority) {
	unlink_stream(h, s);
	s->priority = priority;
	link_stream(h, s);
}

void stream_account(struct http2 *h, struct stream *s) {
	size_t memory = sizeof *s + (s->batch ? response_batch_memory(s->batch) : 0) + s->early_length;
	const size_t kept = s->exchange ? exchange_memory(s->exchange) : 0, waiting = stream_waits(s) ? kept : 0;
	const bool passed = stream_is_passed_on(s), tunnel = passed && s->exchange->tunnel;
	memory += kept;
	h->memory += memory - s->account.memory;
	h->waiting_size += waiting - s->account.waiting;
	h->passes += (unsigned)passed - s->account.passed;
	h->tunnels += (unsigned)tunnel - s->account.tunnel;
	s->account.memory = memory;
	s->account.waiting = waiting;
	s->account.passed = passed;
	s->account.tunnel = tunnel;
}

void stream_drop_batch(struct http2 *h, struct stream *s) {
	if (s->batch) response_batch_return(h->context->exchanges->batches, s->batch);
	s->batch = NULL;
	s->block_length = 0;
}

bool stream_keep_early(struct http2 *h, struct stream *s, struct slice content) {
	char *grown = content.length ? realloc(s->early, s->early_length + content.length) : s->early;
	if (content.length && !grown) return false;
	s->early = grown;
	if (content.length) memcpy(grown + s->early_length, content.at, content.length);
	s->early_length += content.length;
	stream_account(h, s);
	return true;
}

void stream_drop_early(struct http2 *h, struct stream *s) {
	h->room_changed |= s->early_length > 0;
	free(s->early);
	s->early = NULL;
	s->early_length = s->early_trailers = 0;
}

void stream_close(struct http2 *h, struct stream *s) {
	unlink_stream(h, s);
	if (stream_is_passed_on(s)) {
		h->room_changed = true;
		if (h->unflushed) proxied_flush(s->exchange->proxied); /* content that came before a RST_STREAM */
	} else if (s->batch) {
		response_batch_log(h->context->exchanges->batches, s->batch);
	}
	stream_drop_batch(h, s);
	exchange_end(s->exchange);
	s->exchange = NULL;
	stream_account(h, s);
	h->memory -= s->account.memory;
	free(s->early);
	if (s->counted) limits_return_requests(h->context->exchanges->limits, &s->client, 1);
	h->files -= s->holds_file;
	h->open--;
	uncount_one(GAUGE_STREAMS);
	free(s);
}

struct peer stream_client(const struct http2 *h, const struct request *request) {
	struct peer client;
	if (h->forwarding && request && forwarded_client(h->context->exchanges->trust, h->forwarding, request, &client))
		return client;
	return h->peer;
}

/* --- frames --- */

void http2_output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags,
						uint32_t stream, const void *payload, size_t length) {
	if (http2_output_room(out) < FRAME_HEADER + length) {
		h->failed = h->draining = true;
		return;
	}
	out->at = frame_header(out->at, length, type, flags, stream);
	if (length) memcpy(out->at, payload, length);
	out->at += length;
}

void http2_output_number(struct http2 *h, struct http2_output *out, enum frame_type type, uint32_t stream,
						 uint32_t number) {
	char payload[4];
	frame_put_32(payload, number);
	http2_output_frame(h, out, type, 0, stream, payload, sizeof payload);
}

void stream_open_window(struct http2 *h, uint32_t id, int64_t *window, int64_t most, struct http2_output *out) {
	if (most - *window <= HTTP2_WINDOW_DEFAULT / 2) return;
	http2_output_number(h, out, FRAME_WINDOW_UPDATE, id, (uint32_t)(most - *window));
	*window = most;
}

enum http2_error http2_count_frame(struct http2 *h, enum http2_flood kind) {
	static const unsigned most[HTTP2_FLOODS] = {
		[HTTP2_FLOOD_RESETS] = HTTP2_RESETS,     [HTTP2_FLOOD_PINGS] = HTTP2_PINGS,
		[HTTP2_FLOOD_SETTINGS] = HTTP2_SETTINGS, [HTTP2_FLOOD_EMPTY] = HTTP2_EMPTY,
		[HTTP2_FLOOD_UPDATES] = HTTP2_UPDATES,   [HTTP2_FLOOD_OTHERS] = HTTP2_OTHERS};
	int64_t second = h->context->exchanges->site->now_ms / 1000;
	if (second != h->second) {
		memset(h->count, 0, sizeof h->count);
		h->second = second;
		h->sent = 0;
	}
	uint64_t allowed = most[kind] + (kind == HTTP2_FLOOD_UPDATES ? h->sent / HTTP2_UPDATE_BYTES : 0);
	return ++h->count[kind] <= allowed ? HTTP2_NO_ERROR : HTTP2_ENHANCE_YOUR_CALM;
}

enum http2_error http2_reset(struct http2 *h, uint32_t id, enum http2_error error, struct http2_output *out) {
	struct stream *s = stream_find(h, id);
	if (s) stream_close(h, s);
	stream_note_reset(h, id);
	if (http2_count_frame(h, HTTP2_FLOOD_RESETS)) return HTTP2_ENHANCE_YOUR_CALM;
	http2_output_number(h, out, FRAME_RST_STREAM, id, error);
	return HTTP2_NO_ERROR;
}

bool http2_was_reset(struct http2 *h, uint32_t id) {
	if (id > h->last_stream || id + 2 * HTTP2_RESETS_REMEMBERED <= h->highest) return true; /* or past the GOAWAY */
	return *stream_reset_word(h, id) & stream_reset_bit(id);
}

void stream_end(struct http2 *h, struct stream *s, struct http2_output *out) {
	if (s->discards || s->receiving) { /* RFC 9113, section 8.1: the rest of the request is not needed */
		http2_output_number(h, out, FRAME_RST_STREAM, s->id, HTTP2_NO_ERROR);
		stream_note_reset(h, s->id);
	}
	stream_close(h, s);
}
