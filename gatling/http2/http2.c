/* http2.c - see http2.h: handles the frames that come; each type has its function. */
#include "gatling/http2/http2.h"

#include <stdlib.h>

#include "gatling/http2/session.h"

static const struct slice preface = SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

enum { HTTP2_SETTING_LENGTH = 6, PING_LENGTH = 8, GOAWAY_LENGTH = 8, NUMBER_LENGTH = 4 };

bool http2_begins(const char *data, size_t length) {
	const size_t line = strlen("PRI * HTTP/2.0\r\n");
	return length >= line && memcmp(data, preface.at, line) == 0;
}

struct http2 *http2_new(const struct http2_context *context, const struct streams_connection *functions,
						void *connection, const struct peer *peer, enum forwarding forwarding, unsigned port,
						bool secure) {
	struct http2 *h = calloc(1, sizeof *h);
	if (!h || nghttp2_hd_inflate_new(&h->inflater) != 0) {
		free(h);
		return NULL;
	}
	h->context = context;
	h->streams.exchanges = context->exchanges;
	h->streams.protocol = &http2_protocol;
	h->streams.common_block = &context->common_block[secure];
	streams_begin(&h->streams, functions, connection, peer, forwarding, port, secure);
	h->send_window = h->receive_window = h->initial_window = HTTP2_WINDOW_DEFAULT;
	return h;
}

void http2_free(struct http2 *h) {
	if (!h) return;
	while (h->streams.first) stream_close(h->streams.first);
	nghttp2_hd_inflate_del(h->inflater);
	free(h->block);
	free(h->unopened);
	free(h);
}

bool http2_ended(const struct http2 *h) {
	return h->streams.failed || ((h->draining || h->leaving) && !h->streams.open && !h->block_stream);
}

struct streams *http2_streams(struct http2 *h) {
	return &h->streams;
}

struct waiting http2_waits(const struct http2 *h) {
	if (h->announced && !h->draining) return (struct waiting){.what = WAIT_DRAIN};
	if (h->block_stream) return (struct waiting){.what = WAIT_HEAD, .since_ns = h->block_since_ns};
	if (h->head_since_ns) return (struct waiting){.what = WAIT_HEAD, .since_ns = h->head_since_ns};
	return streams_wait(&h->streams);
}

/* Sends the server's preface, which is its first frame (section 3.4), unless it has been sent. */
static void greet(struct http2 *h, struct http2_output *out) {
	static const struct {
		unsigned name;
		uint32_t value;
	} ours[] = {{HTTP2_SETTING_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
				{HTTP2_SETTING_MAX_HEADER_LIST_SIZE, REQUEST_LIST_MAX},
				{HTTP2_SETTING_NO_RFC7540_PRIORITIES, 1},
				{HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL, 1}}; /* only if requests are passed on */
	if (h->greeted) return;
	h->greeted = true;
	char payload[sizeof ours / sizeof *ours * HTTP2_SETTING_LENGTH], *at = payload;
	for (size_t i = 0; i < sizeof ours / sizeof *ours - !h->context->exchanges->upstreams; i++)
		at = frame_put_32(frame_put_16(at, ours[i].name), ours[i].value);
	http2_output_frame(h, out, FRAME_SETTINGS, 0, 0, payload, (size_t)(at - payload));
	h->streams.room_changed = h->context->exchanges->upstreams; /* the window of the connection is larger then */
}

/* --- ending the session --- */

static void send_goaway(struct http2 *h, uint32_t last, enum http2_error error, struct http2_output *out) {
	char payload[GOAWAY_LENGTH];
	greet(h, out);
	frame_put_32(frame_put_32(payload, last), error);
	if (!h->streams.failed) http2_output_frame(h, out, FRAME_GOAWAY, 0, 0, payload, sizeof payload);
}

static void go_away(struct http2 *h, enum http2_error error, struct http2_output *out) {
	send_goaway(h, h->last_stream, error, out);
	h->draining = true;
	h->streams.failed |= error != HTTP2_NO_ERROR;
}

static const char drain_ping[PING_LENGTH] = "gatling";

void http2_announce_end(struct http2 *h, struct http2_output *out) {
	if (h->announced || h->draining) return;
	send_goaway(h, HTTP2_WINDOW_MAX, HTTP2_NO_ERROR, out);
	http2_output_frame(h, out, FRAME_PING, 0, 0, drain_ping, sizeof drain_ping);
	h->announced = true;
}

void http2_drain(struct http2 *h, struct http2_output *out) {
	if (!h->draining) go_away(h, HTTP2_NO_ERROR, out);
}

void http2_calm(struct http2 *h, struct http2_output *out) {
	if (!h->streams.failed) go_away(h, HTTP2_ENHANCE_YOUR_CALM, out);
}

void http2_input_ended(struct http2 *h) {
	h->leaving = true;
	for (struct stream *s = h->streams.first, *next; s; s = next) {
		next = s->next;
		if (s->receiving) stream_close(s);
	}
	h->block_stream = 0;
	h->head_since_ns = 0;
}

/* --- the other frames --- */

/* Checks a PRIORITY frame, whose content is otherwise ignored (RFC 9113, section 5.3.2). An idle stream cannot be reset
 * (section 6.4). */
static enum http2_error take_priority(struct http2 *h, const struct frame *f, struct http2_output *out) {
	enum http2_error error = HTTP2_NO_ERROR;
	if (http2_count_frame(h, HTTP2_FLOOD_OTHERS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (f->length != FRAME_PRIORITY_LENGTH) error = HTTP2_FRAME_SIZE_ERROR;
	else if ((frame_get_32(f->payload) & HTTP2_WINDOW_MAX) == f->stream) error = HTTP2_PROTOCOL_ERROR;
	return error && !http2_is_unopened(h, f->stream) ? http2_reset(h, f->stream, error, out) : error;
}

/* Handles PRIORITY_UPDATE (RFC 9218, section 7.1). Even stream IDs are those of pushes, which the server never
 * sends. */
static enum http2_error take_priority_update(struct http2 *h, const struct frame *f) {
	if (http2_count_frame(h, HTTP2_FLOOD_OTHERS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (f->length < NUMBER_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	uint32_t id = frame_get_32(f->payload) & HTTP2_WINDOW_MAX;
	if (id % 2 == 0) return HTTP2_PROTOCOL_ERROR;
	struct stream *s = stream_find(&h->streams, id);
	struct slice value = {.at = (const char *)f->payload + NUMBER_LENGTH, .length = f->length - NUMBER_LENGTH};
	struct priority priority = PRIORITY_DEFAULT;
	priority_parse(value, &priority);
	if (s) stream_set_priority(s, priority);
	const bool kept = s || id <= h->highest || unopened_keep(&h->unopened, id, priority, STREAMS_MAX - h->streams.open);
	return kept ? HTTP2_NO_ERROR : HTTP2_PROTOCOL_ERROR;
}

static enum http2_error take_reset(struct http2 *h, const struct frame *f) {
	struct stream *s = stream_find(&h->streams, f->stream);
	if (f->length != NUMBER_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	if (http2_is_unopened(h, f->stream)) return HTTP2_PROTOCOL_ERROR;
	if (http2_count_frame(h, HTTP2_FLOOD_RESETS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (s) stream_close(s);
	return HTTP2_NO_ERROR;
}

static enum http2_error set_initial_window(struct http2 *h, int64_t value) {
	for (struct stream *s = h->streams.first; s; s = s->next) {
		s->send_window += value - h->initial_window;
		if (s->send_window > HTTP2_WINDOW_MAX) return HTTP2_FLOW_CONTROL_ERROR;
	}
	h->initial_window = value;
	return HTTP2_NO_ERROR;
}

/* Handles a setting. *window: the initial window after the settings so far. */
static enum http2_error take_setting(struct http2 *h, unsigned name, uint32_t value, int64_t *window) {
	switch (name) {
	case HTTP2_SETTING_HEADER_TABLE_SIZE:
		h->shrink_table |= value < NGHTTP2_DEFAULT_HEADER_TABLE_SIZE;
		h->dynamic.off |= h->shrink_table;
		break;
	case HTTP2_SETTING_ENABLE_PUSH:
	case HTTP2_SETTING_NO_RFC7540_PRIORITIES: return value > 1 ? HTTP2_PROTOCOL_ERROR : HTTP2_NO_ERROR;
	case HTTP2_SETTING_INITIAL_WINDOW_SIZE:
		*window = value;
		return value > HTTP2_WINDOW_MAX ? HTTP2_FLOW_CONTROL_ERROR : HTTP2_NO_ERROR;
	case HTTP2_SETTING_MAX_FRAME_SIZE:
		return value < FRAME_PAYLOAD_MAX || value > 0xffffff ? HTTP2_PROTOCOL_ERROR : HTTP2_NO_ERROR;
	}
	return HTTP2_NO_ERROR;
}

static enum http2_error take_settings(struct http2 *h, const struct frame *f, struct http2_output *out) {
	bool ack = f->flags & FRAME_FLAG_ACK;
	int64_t window = h->initial_window;
	enum http2_error error = http2_count_frame(h, HTTP2_FLOOD_SETTINGS);
	if (f->length % HTTP2_SETTING_LENGTH || (ack && f->length)) return HTTP2_FRAME_SIZE_ERROR;
	for (const unsigned char *at = f->payload; !error && at < f->payload + f->length; at += HTTP2_SETTING_LENGTH)
		error = take_setting(h, (unsigned)at[0] << 8 | at[1], frame_get_32(at + 2), &window);
	if (!error) error = set_initial_window(h, window);
	if (!error && !ack) http2_output_frame(h, out, FRAME_SETTINGS, FRAME_FLAG_ACK, 0, NULL, 0);
	return error;
}

static enum http2_error take_ping(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (f->length != PING_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	if (http2_count_frame(h, HTTP2_FLOOD_PINGS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (!(f->flags & FRAME_FLAG_ACK)) http2_output_frame(h, out, FRAME_PING, FRAME_FLAG_ACK, 0, f->payload, f->length);
	else if (h->announced && memcmp(f->payload, drain_ping, sizeof drain_ping) == 0) http2_drain(h, out);
	return HTTP2_NO_ERROR;
}

static enum http2_error take_window_update(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (f->length != NUMBER_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	if (f->stream && http2_is_unopened(h, f->stream)) return HTTP2_PROTOCOL_ERROR;
	if (http2_count_frame(h, HTTP2_FLOOD_UPDATES)) return HTTP2_ENHANCE_YOUR_CALM;
	uint32_t more = frame_get_32(f->payload) & HTTP2_WINDOW_MAX;
	struct stream *s = f->stream ? stream_find(&h->streams, f->stream) : NULL;
	int64_t *window = s ? &s->send_window : &h->send_window;
	if (f->stream && !s) return HTTP2_NO_ERROR; /* it has just been closed */
	*window += more;
	h->streams.room_changed |= h->streams.share.starved;
	if (more && *window <= HTTP2_WINDOW_MAX) return HTTP2_NO_ERROR;
	enum http2_error error = more ? HTTP2_FLOW_CONTROL_ERROR : HTTP2_PROTOCOL_ERROR;
	return s ? http2_reset(h, s->id, error, out) : error;
}

/* Return whether frames of a type belong to the connection, or to a stream (section 6). */
static bool is_of_connection(unsigned type) {
	return type == FRAME_SETTINGS || type == FRAME_PING || type == FRAME_GOAWAY || type == FRAME_PRIORITY_UPDATE;
}

static bool is_of_stream(unsigned type) {
	return type == FRAME_DATA || type == FRAME_HEADERS || type == FRAME_PRIORITY || type == FRAME_RST_STREAM ||
		   type == FRAME_CONTINUATION;
}

static enum http2_error take_frame(struct http2 *h, const struct frame *f, struct http2_output *out) {
	bool expected = h->block_stream ? f->type == FRAME_CONTINUATION && f->stream == h->block_stream
									: f->type != FRAME_CONTINUATION && f->type != FRAME_PUSH_PROMISE;
	if (!h->settled) expected = f->type == FRAME_SETTINGS && !(f->flags & FRAME_FLAG_ACK);
	h->settled = true;
	if (!expected || (is_of_connection(f->type) && f->stream) || (is_of_stream(f->type) && !f->stream))
		return HTTP2_PROTOCOL_ERROR;
	switch (f->type) {
	case FRAME_DATA: return http2_take_data(h, f, out);
	case FRAME_HEADERS: return http2_take_headers(h, f, out);
	case FRAME_PRIORITY: return take_priority(h, f, out);
	case FRAME_RST_STREAM: return take_reset(h, f);
	case FRAME_SETTINGS: return take_settings(h, f, out);
	case FRAME_PING: return take_ping(h, f, out);
	case FRAME_GOAWAY: h->leaving = true; return f->length < GOAWAY_LENGTH ? HTTP2_FRAME_SIZE_ERROR : HTTP2_NO_ERROR;
	case FRAME_WINDOW_UPDATE: return take_window_update(h, f, out);
	case FRAME_CONTINUATION: return http2_take_continuation(h, f, out);
	case FRAME_PRIORITY_UPDATE: return take_priority_update(h, f);
	default: return http2_count_frame(h, HTTP2_FLOOD_OTHERS);
	}
}

/* --- the bytes --- */

/* Checks the client's preface. Returns the number of bytes used. */
static size_t take_preface(struct http2 *h, const char *data, size_t length, struct http2_output *out) {
	size_t n = preface.length - h->preface;
	if (n > length) n = length;
	greet(h, out);
	if (memcmp(data, preface.at + h->preface, n) != 0) go_away(h, HTTP2_PROTOCOL_ERROR, out);
	h->preface += (uint8_t)n;
	return n;
}

/* Notes what the bytes at the end are, of which the rest of a frame has not come. */
static void note_part(struct http2 *h, const char *part, size_t length) {
	if (length <= FRAME_TYPE_AT || part[FRAME_TYPE_AT] != FRAME_HEADERS) h->head_since_ns = 0;
	else if (!h->head_since_ns) h->head_since_ns = h->context->exchanges->site->now_ns;
}

size_t http2_receive(struct http2 *h, const char *data, size_t length, struct http2_output *out) {
	size_t at = h->preface < preface.length && length ? take_preface(h, data, length, out) : 0;
	struct frame f = {0};
	while (!h->streams.failed) {
		size_t n = frame_read(&f, data + at, length - at);
		enum http2_error error = HTTP2_NO_ERROR;
		if (f.length > FRAME_PAYLOAD_MAX) error = HTTP2_FRAME_SIZE_ERROR;
		else if (n == 0) break;
		else error = take_frame(h, &f, out);
		if (!error && http2_memory(h) > h->context->memory_max) error = HTTP2_ENHANCE_YOUR_CALM;
		if (error) go_away(h, error, out);
		at += n;
	}
	if (length) note_part(h, data + at, length - at); /* without input, the part is where it was */
	if (h->streams.unflushed) {
		streams_flush(&h->streams);
		if (!h->streams.failed && http2_memory(h) > h->context->memory_max) go_away(h, HTTP2_ENHANCE_YOUR_CALM, out);
	}
	return h->streams.failed ? length : at;
}
