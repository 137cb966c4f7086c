/* http2.c - see http2.h: frames come in, and each type has its function. */
#include "gatling/http2/http2.h"

#include <stdlib.h>

#include "gatling/http2/stream.h"

static const struct slice preface = SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

enum { HTTP2_SETTING_LENGTH = 6, PING_LENGTH = 8, GOAWAY_LENGTH = 8, PRIORITY_LENGTH = 5, NUMBER_LENGTH = 4 };

bool http2_begins(const char *data, size_t length) {
	const size_t line = strlen("PRI * HTTP/2.0\r\n");
	return length >= line && memcmp(data, preface.at, line) == 0;
}

struct http2 *http2_new(const struct http2_context *context, const struct http2_connection *functions, void *connection,
						const struct peer *peer, unsigned port, bool secure) {
	struct http2 *h = calloc(1, sizeof *h);
	if (!h || nghttp2_hd_inflate_new(&h->inflater) != 0) {
		free(h);
		return NULL;
	}
	h->context = context;
	h->functions = functions;
	h->connection = connection;
	h->peer = *peer;
	h->port = (uint16_t)port;
	h->secure = secure;
	h->send_window = h->receive_window = h->initial_window = HTTP2_WINDOW_DEFAULT;
	return h;
}

void http2_free(struct http2 *h) {
	if (!h) return;
	for (int i = 0; i < HTTP2_URGENCIES; i++)
		while (h->streams[i].first) stream_free(h, h->streams[i].first);
	nghttp2_hd_inflate_del(h->inflater);
	free(h->block);
	free(h->idle);
	free(h);
}

/* Returns about the bytes that nghttp2 keeps: those that RFC 7541, section 4.1 counts, and overhead. */
static size_t table_memory(nghttp2_hd_inflater *inflater) {
	enum { STATIC_ENTRIES = 61, ENTRY = 128, INFLATER = 2048 };
	size_t entries = nghttp2_hd_inflate_get_num_table_entries(inflater) - STATIC_ENTRIES;
	return INFLATER + entries * ENTRY + nghttp2_hd_inflate_get_dynamic_table_size(inflater);
}

size_t http2_memory(const struct http2 *h) {
	return sizeof *h + h->memory + h->block_length + (h->idle ? sizeof *h->idle : 0) + table_memory(h->inflater);
}

bool http2_idle(const struct http2 *h) { return !h->open && !h->block_stream; }
bool http2_ended(const struct http2 *h) { return h->failed || ((h->draining || h->leaving) && http2_idle(h)); }

bool http2_waits(const struct http2 *h) { return stream_waits(h); }
bool http2_in_block(const struct http2 *h) { return h->block_stream; }

bool http2_progress(struct http2 *h) {
	bool progress = h->progress;
	h->progress = false;
	return progress;
}

/* The server's preface, the first frame that it sends (section 3.4). */
static void greet(struct http2 *h, struct http2_output *out) {
	static const struct {
		unsigned name;
		uint32_t value;
	} ours[] = {{HTTP2_SETTING_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX},
				{HTTP2_SETTING_MAX_HEADER_LIST_SIZE, HTTP2_LIST_MAX},
				{HTTP2_SETTING_NO_RFC7540_PRIORITIES, 1}};
	if (h->greeted) return;
	h->greeted = true;
	char payload[sizeof ours / sizeof *ours * HTTP2_SETTING_LENGTH], *at = payload;
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		at = frame_put_32(frame_put_16(at, ours[i].name), ours[i].value);
	http2_output_frame(h, out, FRAME_SETTINGS, 0, 0, payload, sizeof payload);
}

/* --- saying what is wrong --- */

static void send_goaway(struct http2 *h, uint32_t last, enum http2_error error, struct http2_output *out) {
	char payload[GOAWAY_LENGTH];
	greet(h, out);
	frame_put_32(frame_put_32(payload, last), error);
	if (!h->failed) http2_output_frame(h, out, FRAME_GOAWAY, 0, 0, payload, sizeof payload);
}

static void go_away(struct http2 *h, enum http2_error error, struct http2_output *out) {
	send_goaway(h, h->last_stream, error, out);
	h->draining = true;
	h->failed |= error != HTTP2_NO_ERROR;
}

static const char drain_ping[PING_LENGTH] = "gatling";

void http2_announce_end(struct http2 *h, struct http2_output *out) {
	if (h->announced || h->draining) return;
	send_goaway(h, HTTP2_WINDOW_MAX, HTTP2_NO_ERROR, out);
	http2_output_frame(h, out, FRAME_PING, 0, 0, drain_ping, sizeof drain_ping);
	h->announced = true;
}

bool http2_end_announced(const struct http2 *h) { return h->announced && !h->draining; }

void http2_drain(struct http2 *h, struct http2_output *out) {
	if (!h->draining) go_away(h, HTTP2_NO_ERROR, out);
}

void http2_calm(struct http2 *h, struct http2_output *out) {
	if (!h->failed) go_away(h, HTTP2_ENHANCE_YOUR_CALM, out);
}

void http2_input_ended(struct http2 *h) {
	h->leaving = true;
	for (int i = 0; i < HTTP2_URGENCIES; i++)
		for (struct stream *s = h->streams[i].first, *next; s; s = next) {
			next = s->next;
			if (s->receiving) stream_free(h, s);
		}
	h->block_stream = 0;
}

/* Counts a frame. true: there are too many of them in this second, and the client has been told. */
static bool floods(struct http2 *h, enum http2_flood kind, struct http2_output *out) {
	static const unsigned most[HTTP2_FLOODS] = {
		[HTTP2_FLOOD_RESETS] = HTTP2_RESETS,     [HTTP2_FLOOD_PINGS] = HTTP2_PINGS,
		[HTTP2_FLOOD_SETTINGS] = HTTP2_SETTINGS, [HTTP2_FLOOD_EMPTY] = HTTP2_EMPTY,
		[HTTP2_FLOOD_UPDATES] = HTTP2_UPDATES,   [HTTP2_FLOOD_OTHERS] = HTTP2_OTHERS};
	int64_t second = h->context->content->now_ms / 1000;
	if (second != h->second) {
		memset(h->count, 0, sizeof h->count);
		h->second = second;
		h->sent = 0;
	}
	uint64_t allowed = most[kind] + (kind == HTTP2_FLOOD_UPDATES ? h->sent / HTTP2_UPDATE_BYTES : 0);
	if (++h->count[kind] <= allowed) return false;
	go_away(h, HTTP2_ENHANCE_YOUR_CALM, out);
	return true;
}

static void reset(struct http2 *h, uint32_t id, enum http2_error error, struct http2_output *out) {
	struct stream *s = stream_find(h, id);
	if (s) stream_free(h, s);
	stream_note_reset(h, id);
	if (!floods(h, HTTP2_FLOOD_RESETS, out)) http2_output_number(h, out, FRAME_RST_STREAM, id, error);
}

/* Section 5.1: returns whether the server has ended the stream, or it is too old to be remembered: its frames are
 * dropped. */
static bool was_reset(struct http2 *h, uint32_t id) {
	if (id > h->last_stream || id + 2 * HTTP2_RESETS_REMEMBERED <= h->highest) return true; /* or behind the GOAWAY */
	return *stream_reset_word(h, id) & stream_reset_bit(id);
}

static bool is_idle(const struct http2 *h, uint32_t id) { return id > h->highest || id % 2 == 0; }

/* --- requests --- */

/* The priority that was said before the stream was opened, if there was one. */
static void take_idle_priority(struct http2 *h, uint32_t id, struct priority *priority) {
	struct idle_priorities *idle = h->idle;
	unsigned kept = 0;
	if (!idle) return;
	for (unsigned i = 0; i < idle->count; i++) {
		if (idle->stream[i].id == id) *priority = idle->stream[i].priority;
		if (idle->stream[i].id > id) idle->stream[kept++] = idle->stream[i]; /* those below are closed by now */
	}
	idle->count = kept;
	if (kept) return;
	free(idle);
	h->idle = NULL;
}

static void answer_request(struct http2 *h, struct stream_request *q, int status, bool blocked,
						   struct http2_output *out) {
	struct connection_info connection = stream_connection_info(h);
	struct response r;
	if (status) response_status(&r, status);
	else answer(h->context->content, q->request, &connection, &r);
	/* RFC 9110, section 10.1.1: 100, or the answer, at once */
	if (q->receiving && request_has(q->request, FIELD_EXPECT)) {
		if (r.status < 400) stream_continue(h, q->id, out);
		else q->discards = true;
		q->receiving = !q->discards;
	}
	if (r.status ? !stream_answer(h, q, &r, blocked, out) : !stream_wait(h, q, r.job))
		go_away(h, HTTP2_INTERNAL_ERROR, out);
}

static bool is_connect(const struct request *request) {
	struct slice method = SLICE("CONNECT ");
	return request->line.length > method.length && memcmp(request->line.at, method.at, method.length) == 0;
}

/* A header block is complete. */
static void take_block(struct http2 *h, uint32_t id, unsigned flags, const unsigned char *block, size_t length,
					   bool blocked, struct http2_output *out) {
	static _Thread_local char text[HTTP2_TEXT];
	static _Thread_local struct request request;
	struct stream_request q = {
		.id = id, .request = &request, .priority = PRIORITY_DEFAULT, .receiving = !(flags & FRAME_FLAG_END_STREAM)};
	struct stream *open = stream_find(h, id);
	bool ignored = !open && was_reset(h, id);
	if (!open && !ignored) take_idle_priority(h, id, &q.priority);
	int status = http2_request_decode(h->inflater, block, length, open, text, &request, &q.priority);
	if (status == 431) {
		if (!open && !ignored) stream_refuse_fields(h, id, out);
		go_away(h, HTTP2_ENHANCE_YOUR_CALM, out);
	} else if (status < 0 && status != -HTTP2_PROTOCOL_ERROR) {
		go_away(h, (enum http2_error) - status, out);
	} else if (ignored) { /* trailers, or behind the GOAWAY: to be decoded, but not answered */
		return;
	} else if (status < 0 ||
			   (open && !open->discards && (q.receiving || (open->has_length && open->received != open->expected)))) {
		if (!open) (void)stream_log(h, &request, (struct slice){0}, 400, 0);
		reset(h, id, HTTP2_PROTOCOL_ERROR, out);
	} else if (open) { /* trailers */
		open->receiving = false;
	} else if (h->open >= HTTP2_STREAMS_MAX) {
		(void)stream_log(h, &request, (struct slice){0}, 503, 0);
		reset(h, id, HTTP2_REFUSED_STREAM, out);
	} else if (!q.receiving && request.content_length) {
		(void)stream_log(h, &request, (struct slice){0}, 400, 0);
		reset(h, id, HTTP2_PROTOCOL_ERROR, out);
	} else {
		q.discards = q.receiving && (status || is_connect(&request)); /* section 8.5: what follows is no content */
		q.receiving &= !q.discards;
		answer_request(h, &q, status, blocked, out);
	}
}

/* Its bit, and those of the streams between, were others'. */
static void note_highest(struct http2 *h, uint32_t id) {
	for (uint32_t n = id; n > h->highest && n > 1 && id - n < 2 * HTTP2_RESETS_REMEMBERED; n -= 2)
		*stream_reset_word(h, n) &= ~stream_reset_bit(n);
	h->highest = id;
}

/* Section 5.1.1: opens a stream, or goes on with one that is open. false: neither can be. */
static bool may_open(struct http2 *h, uint32_t id, struct http2_output *out) {
	struct stream *s = stream_find(h, id);
	if (id % 2 == 0 || (id < h->highest && !s && !was_reset(h, id))) go_away(h, HTTP2_PROTOCOL_ERROR, out);
	else if ((s && !s->receiving && !s->discards) || (!s && id == h->highest && !was_reset(h, id)))
		go_away(h, HTTP2_STREAM_CLOSED, out);
	if (h->failed) return false;
	if (id > h->highest) note_highest(h, id);
	if (!h->draining) h->last_stream = h->highest;
	return true;
}

/* Keeps part of a header block. */
static bool keep_block(struct http2 *h, const unsigned char *part, size_t length, struct http2_output *out) {
	unsigned char *grown = realloc(h->block, h->block_length + length + 1);
	if (!grown) {
		go_away(h, HTTP2_INTERNAL_ERROR, out);
		return false;
	}
	h->block = grown;
	memcpy(h->block + h->block_length, part, length);
	h->block_length += length;
	return true;
}

static void take_headers(struct http2 *h, const struct frame *f, bool blocked, struct http2_output *out) {
	size_t padding = 0, skipped = 0;
	if (f->flags & FRAME_FLAG_PADDED) padding = f->length ? f->payload[skipped++] : FRAME_PAYLOAD_MAX;
	if (f->flags & FRAME_FLAG_PRIORITY) skipped += PRIORITY_LENGTH;
	if (!may_open(h, f->stream, out)) return;
	if (padding + skipped > f->length) {
		go_away(h, HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	const unsigned char *block = f->payload + skipped;
	size_t length = f->length - skipped - padding;
	bool self =
		f->flags & FRAME_FLAG_PRIORITY && (frame_get_32(block - PRIORITY_LENGTH) & HTTP2_WINDOW_MAX) == f->stream;
	if (f->flags & FRAME_FLAG_END_HEADERS && !self) {
		take_block(h, f->stream, f->flags, block, length, blocked, out);
		return;
	}
	if (self) { /* a stream cannot depend on itself (RFC 7540, section 5.3.1); its block was not looked at */
		go_away(h, HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	h->block_length = 0;
	h->block_stream = f->stream;
	h->block_flags = f->flags;
	h->continuations = 0;
	(void)keep_block(h, block, length, out);
}

static void take_continuation(struct http2 *h, const struct frame *f, bool blocked, struct http2_output *out) {
	if (!f->length && !(f->flags & FRAME_FLAG_END_HEADERS) && floods(h, HTTP2_FLOOD_EMPTY, out)) return;
	if (++h->continuations > HTTP2_CONTINUATIONS_MAX || f->length > HTTP2_BLOCK_MAX - h->block_length) {
		go_away(h, HTTP2_ENHANCE_YOUR_CALM, out);
		return;
	}
	if (!keep_block(h, f->payload, f->length, out) || !(f->flags & FRAME_FLAG_END_HEADERS)) return;
	unsigned char *block = h->block;
	uint32_t id = h->block_stream;
	size_t length = h->block_length;
	h->block = NULL;
	h->block_length = h->block_stream = 0;
	take_block(h, id, h->block_flags, block, length, blocked, out);
	free(block);
}

/* --- content of requests: it is counted and dropped --- */

static void open_window(struct http2 *h, uint32_t id, int64_t *window, struct http2_output *out) {
	if (*window >= HTTP2_WINDOW_DEFAULT / 2) return;
	http2_output_number(h, out, FRAME_WINDOW_UPDATE, id, (uint32_t)(HTTP2_WINDOW_DEFAULT - *window));
	*window = HTTP2_WINDOW_DEFAULT;
}

static void take_data(struct http2 *h, const struct frame *f, struct http2_output *out) {
	struct stream *s = stream_find(h, f->stream);
	size_t padding = f->flags & FRAME_FLAG_PADDED ? (f->length ? f->payload[0] + 1U : FRAME_PAYLOAD_MAX) : 0;
	h->receive_window -= f->length;
	if (is_idle(h, f->stream) || padding > f->length) {
		go_away(h, HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	if (h->receive_window < 0) {
		go_away(h, HTTP2_FLOW_CONTROL_ERROR, out);
		return;
	}
	if (f->length == padding && !(f->flags & FRAME_FLAG_END_STREAM) && floods(h, HTTP2_FLOOD_EMPTY, out)) return;
	open_window(h, 0, &h->receive_window, out);
	if (s ? s->discards : was_reset(h, f->stream)) return;
	if (!s || !s->receiving) {
		reset(h, f->stream, HTTP2_STREAM_CLOSED, out);
		return;
	}
	s->receive_window -= f->length;
	s->received += f->length - padding;
	s->receiving = !(f->flags & FRAME_FLAG_END_STREAM);
	if (s->receive_window < 0) reset(h, s->id, HTTP2_FLOW_CONTROL_ERROR, out);
	else if (s->has_length && (s->received > s->expected || (!s->receiving && s->received != s->expected)))
		reset(h, s->id, HTTP2_PROTOCOL_ERROR, out);
	else if (s->received > BODY_MAX) reset(h, s->id, HTTP2_ENHANCE_YOUR_CALM, out);
	else if (s->receiving) open_window(h, s->id, &s->receive_window, out);
}

/* --- the other frames --- */

static void take_priority(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (floods(h, HTTP2_FLOOD_OTHERS, out)) return; /* what it says has no meaning any more (RFC 9113, section 5.3.2) */
	if (f->length != PRIORITY_LENGTH) reset(h, f->stream, HTTP2_FRAME_SIZE_ERROR, out);
	else if ((frame_get_32(f->payload) & HTTP2_WINDOW_MAX) == f->stream) reset(h, f->stream, HTTP2_PROTOCOL_ERROR, out);
}

/* Streams with a priority count with the open ones (RFC 9218, section 7.1). */
static void keep_idle_priority(struct http2 *h, uint32_t id, struct priority priority, struct http2_output *out) {
	unsigned at = 0;
	if (!h->idle && !(h->idle = calloc(1, sizeof *h->idle))) return; /* it is a hint */
	while (at < h->idle->count && h->idle->stream[at].id != id) at++;
	if (at == h->idle->count && at + h->open >= HTTP2_STREAMS_MAX) {
		go_away(h, HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	h->idle->count += at == h->idle->count;
	h->idle->stream[at].id = id;
	h->idle->stream[at].priority = priority;
}

/* RFC 9218, section 7.1. */
static void take_priority_update(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (floods(h, HTTP2_FLOOD_OTHERS, out)) return;
	uint32_t id = f->length >= NUMBER_LENGTH ? frame_get_32(f->payload) & HTTP2_WINDOW_MAX : 0;
	if (f->length < NUMBER_LENGTH || !id) {
		go_away(h, f->length < NUMBER_LENGTH ? HTTP2_FRAME_SIZE_ERROR : HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	if (id % 2 == 0) { /* of a stream that only we could open, by a push */
		go_away(h, HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	struct stream *s = stream_find(h, id);
	struct slice value = {.at = (const char *)f->payload + NUMBER_LENGTH, .length = f->length - NUMBER_LENGTH};
	struct priority priority = PRIORITY_DEFAULT;
	priority_parse(value, &priority);
	if (s) stream_set_priority(h, s, priority);
	else if (id > h->highest) keep_idle_priority(h, id, priority, out);
}

static void take_reset(struct http2 *h, const struct frame *f, struct http2_output *out) {
	struct stream *s = stream_find(h, f->stream);
	if (f->length != NUMBER_LENGTH) go_away(h, HTTP2_FRAME_SIZE_ERROR, out);
	else if (is_idle(h, f->stream)) go_away(h, HTTP2_PROTOCOL_ERROR, out);
	else if (!floods(h, HTTP2_FLOOD_RESETS, out) && s) stream_free(h, s);
}

static void set_initial_window(struct http2 *h, int64_t value, struct http2_output *out) {
	if (value == h->initial_window) return;
	for (int i = 0; i < HTTP2_URGENCIES; i++)
		for (struct stream *s = h->streams[i].first; s; s = s->next) {
			s->send_window += value - h->initial_window;
			if (s->send_window > HTTP2_WINDOW_MAX) go_away(h, HTTP2_FLOW_CONTROL_ERROR, out);
		}
	h->initial_window = value;
}

/* *window: what the frame says so far of the initial one. */
static void take_setting(struct http2 *h, unsigned name, uint32_t value, int64_t *window, struct http2_output *out) {
	switch (name) {
	case HTTP2_SETTING_HEADER_TABLE_SIZE: h->shrink_table |= value < NGHTTP2_DEFAULT_HEADER_TABLE_SIZE; break;
	case HTTP2_SETTING_ENABLE_PUSH:
	case HTTP2_SETTING_NO_RFC7540_PRIORITIES:
		if (value > 1) go_away(h, HTTP2_PROTOCOL_ERROR, out);
		break;
	case HTTP2_SETTING_INITIAL_WINDOW_SIZE:
		if (value > HTTP2_WINDOW_MAX) go_away(h, HTTP2_FLOW_CONTROL_ERROR, out);
		*window = value;
		break;
	case HTTP2_SETTING_MAX_FRAME_SIZE:
		if (value < FRAME_PAYLOAD_MAX || value > 0xffffff) go_away(h, HTTP2_PROTOCOL_ERROR, out);
		break;
	}
}

static void take_settings(struct http2 *h, const struct frame *f, struct http2_output *out) {
	bool ack = f->flags & FRAME_FLAG_ACK;
	int64_t window = h->initial_window;
	if (f->length % HTTP2_SETTING_LENGTH || (ack && f->length)) go_away(h, HTTP2_FRAME_SIZE_ERROR, out);
	if (h->failed || floods(h, HTTP2_FLOOD_SETTINGS, out) || ack) return;
	for (uint32_t at = 0; at < f->length && !h->failed; at += HTTP2_SETTING_LENGTH)
		take_setting(h, (unsigned)f->payload[at] << 8 | f->payload[at + 1], frame_get_32(f->payload + at + 2), &window,
					 out);
	if (!h->failed) set_initial_window(h, window, out);
	if (!h->failed) http2_output_frame(h, out, FRAME_SETTINGS, FRAME_FLAG_ACK, 0, NULL, 0);
}

static void take_ping(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (f->length != PING_LENGTH) go_away(h, HTTP2_FRAME_SIZE_ERROR, out);
	else if (floods(h, HTTP2_FLOOD_PINGS, out)) return;
	else if (!(f->flags & FRAME_FLAG_ACK))
		http2_output_frame(h, out, FRAME_PING, FRAME_FLAG_ACK, 0, f->payload, f->length);
	else if (h->announced && memcmp(f->payload, drain_ping, sizeof drain_ping) == 0) http2_drain(h, out);
}

static void take_window_update(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (f->length != NUMBER_LENGTH) {
		go_away(h, HTTP2_FRAME_SIZE_ERROR, out);
		return;
	}
	if (f->stream && is_idle(h, f->stream)) {
		go_away(h, HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	if (floods(h, HTTP2_FLOOD_UPDATES, out)) return;
	uint32_t more = frame_get_32(f->payload) & HTTP2_WINDOW_MAX;
	struct stream *s = f->stream ? stream_find(h, f->stream) : NULL;
	int64_t *window = s ? &s->send_window : &h->send_window;
	if (f->stream && !s) return; /* it has just been closed */
	*window += more;
	if (more && *window <= HTTP2_WINDOW_MAX) return;
	if (s) reset(h, s->id, more ? HTTP2_FLOW_CONTROL_ERROR : HTTP2_PROTOCOL_ERROR, out);
	else go_away(h, more ? HTTP2_FLOW_CONTROL_ERROR : HTTP2_PROTOCOL_ERROR, out);
}

/* Section 6: which frames are of the connection, and which of a stream. */
static bool is_of_connection(unsigned type) {
	return type == FRAME_SETTINGS || type == FRAME_PING || type == FRAME_GOAWAY || type == FRAME_PRIORITY_UPDATE;
}

static bool is_of_stream(unsigned type) {
	return type == FRAME_DATA || type == FRAME_HEADERS || type == FRAME_PRIORITY || type == FRAME_RST_STREAM ||
		   type == FRAME_CONTINUATION;
}

static void take_frame(struct http2 *h, const struct frame *f, bool blocked, struct http2_output *out) {
	bool expected = h->block_stream ? f->type == FRAME_CONTINUATION && f->stream == h->block_stream
									: f->type != FRAME_CONTINUATION && f->type != FRAME_PUSH_PROMISE;
	if (!h->settled) expected = f->type == FRAME_SETTINGS && !(f->flags & FRAME_FLAG_ACK);
	h->settled = true;
	if (!expected || (is_of_connection(f->type) && f->stream) || (is_of_stream(f->type) && !f->stream)) {
		go_away(h, HTTP2_PROTOCOL_ERROR, out);
		return;
	}
	switch (f->type) {
	case FRAME_DATA: take_data(h, f, out); break;
	case FRAME_HEADERS: take_headers(h, f, blocked, out); break;
	case FRAME_PRIORITY: take_priority(h, f, out); break;
	case FRAME_RST_STREAM: take_reset(h, f, out); break;
	case FRAME_SETTINGS: take_settings(h, f, out); break;
	case FRAME_PING: take_ping(h, f, out); break;
	case FRAME_GOAWAY:
		if (f->length < GOAWAY_LENGTH) go_away(h, HTTP2_FRAME_SIZE_ERROR, out);
		h->leaving = true;
		break;
	case FRAME_WINDOW_UPDATE: take_window_update(h, f, out); break;
	case FRAME_CONTINUATION: take_continuation(h, f, blocked, out); break;
	case FRAME_PRIORITY_UPDATE: take_priority_update(h, f, out); break;
	default: (void)floods(h, HTTP2_FLOOD_OTHERS, out);
	}
}

/* --- the bytes --- */

/* The client's preface; the bytes used. */
static size_t take_preface(struct http2 *h, const char *data, size_t length, struct http2_output *out) {
	size_t n = preface.length - h->preface;
	if (n > length) n = length;
	greet(h, out);
	if (memcmp(data, preface.at + h->preface, n) != 0) go_away(h, HTTP2_PROTOCOL_ERROR, out);
	h->preface += (uint8_t)n;
	return n;
}

size_t http2_receive(struct http2 *h, const char *data, size_t length, bool blocked, struct http2_output *out) {
	size_t at = h->preface < preface.length && length ? take_preface(h, data, length, out) : 0;
	struct frame f = {0};
	while (!h->failed) {
		size_t n = frame_read(&f, data + at, length - at);
		if (f.length > FRAME_PAYLOAD_MAX) go_away(h, HTTP2_FRAME_SIZE_ERROR, out);
		if (n == 0) break;
		take_frame(h, &f, blocked, out);
		if (http2_memory(h) > h->context->memory_max) http2_calm(h, out);
		at += n;
	}
	return h->failed ? length : at;
}

bool http2_sendable(const struct http2 *h) { return !h->failed && stream_sendable(h); }

bool http2_next(struct http2 *h, struct http2_content *content, const struct http2_output *out) {
	return stream_next(h, content, out);
}

void http2_write(struct http2 *h, const struct http2_content *content, ssize_t length, struct http2_output *out) {
	stream_write(h, content, length, out);
}
