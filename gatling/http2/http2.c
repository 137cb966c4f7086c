/* http2.c - see http2.h: frames come in, and each type has its function. */
#include "gatling/http2/http2.h"

#include <stdlib.h>

#include "gatling/base/workspace.h"
#include "gatling/http2/stream.h"
#include "gatling/site/challenge.h"
#include "gatling/site/health.h"

static const struct slice preface = SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

enum { HTTP2_SETTING_LENGTH = 6, PING_LENGTH = 8, GOAWAY_LENGTH = 8, PRIORITY_LENGTH = 5, NUMBER_LENGTH = 4 };

bool http2_begins(const char *data, size_t length) {
	const size_t line = strlen("PRI * HTTP/2.0\r\n");
	return length >= line && memcmp(data, preface.at, line) == 0;
}

struct http2 *http2_new(const struct http2_context *context, const struct http2_connection *functions, void *connection,
						const struct peer *peer, enum forwarding forwarding, unsigned port, bool secure) {
	struct http2 *h = calloc(1, sizeof *h);
	if (!h || nghttp2_hd_inflate_new(&h->inflater) != 0) {
		free(h);
		return NULL;
	}
	h->context = context;
	h->functions = functions;
	h->connection = connection;
	h->peer = *peer;
	h->forwarding = forwarding;
	h->port = (uint16_t)port;
	h->secure = secure;
	h->send_window = h->receive_window = h->initial_window = HTTP2_WINDOW_DEFAULT;
	h->share.most = HTTP2_PASSED_RESPONSES;

	return h;
}

void http2_free(struct http2 *h) {
	if (!h) return;
	while (h->first) stream_close(h, h->first);
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

int64_t http2_waiting_since(const struct http2 *h) { return stream_waiting_since(h); }
bool http2_give_up_waiting(struct http2 *h, int64_t since_ns) { return stream_give_up_waiting(h, since_ns); }
bool http2_passes(const struct http2 *h) { return stream_passes(h); }
bool http2_awaits_upstream(const struct http2 *h) { return stream_awaits_upstream(h); }
bool http2_has_tunnels(const struct http2 *h) { return h->tunnels; }
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
				{HTTP2_SETTING_NO_RFC7540_PRIORITIES, 1},
				{HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL, 1}}; /* the last, if requests are passed on */
	if (h->greeted) return;
	h->greeted = true;
	char payload[sizeof ours / sizeof *ours * HTTP2_SETTING_LENGTH], *at = payload;
	for (size_t i = 0; i < sizeof ours / sizeof *ours - !h->context->upstreams; i++)
		at = frame_put_32(frame_put_16(at, ours[i].name), ours[i].value);
	http2_output_frame(h, out, FRAME_SETTINGS, 0, 0, payload, (size_t)(at - payload));
	h->room_changed = h->context->upstreams; /* the window of the connection is larger then */
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
	for (struct stream *s = h->first, *next; s; s = next) {
		next = s->next;
		if (s->receiving) stream_close(h, s);
	}
	h->block_stream = 0;
}

/* What the functions for frames return: HTTP2_NO_ERROR, or the error with which the session ends. */

/* Counts a frame. */
static enum http2_error count_frame(struct http2 *h, enum http2_flood kind) {
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
	return ++h->count[kind] <= allowed ? HTTP2_NO_ERROR : HTTP2_ENHANCE_YOUR_CALM;
}

static enum http2_error reset(struct http2 *h, uint32_t id, enum http2_error error, struct http2_output *out) {
	struct stream *s = stream_find(h, id);
	if (s) stream_close(h, s);
	stream_note_reset(h, id);
	if (count_frame(h, HTTP2_FLOOD_RESETS)) return HTTP2_ENHANCE_YOUR_CALM;
	http2_output_number(h, out, FRAME_RST_STREAM, id, error);
	return HTTP2_NO_ERROR;
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

static enum http2_error answer_request(struct http2 *h, struct stream_request *q, int status,
									   struct http2_output *out) {
	q->client = stream_client(h, q->request);
	struct connection_info connection = stream_connection_info(h, &q->client);
	struct response r;
	const bool health = !status && (health_answer(h->context->content, q->request, &r) ||
									challenge_answer(h->context->content, q->request, &r));
	if (!status && !health) {
		status = limits_take_request(h->context->limits, &q->client, batch_pool_now_ns(h->context->batches));
		q->counted = !status;
	}
	if (status) response_status(&r, status);
	else if (!health) answer(h->context->content, q->request, &connection, &r);
	if (r.status && q->request->content_length > BODY_MAX) {
		response_drop(&r);
		response_status(&r, 413);
	}
	/* RFC 9110, section 10.1.1: 100, or the answer, at once; or that of an upstream */
	if (q->receiving && r.status && request_has(q->request, FIELD_EXPECT)) {
		if (r.status < 400) stream_continue(h, q->id, out);
		else q->discards = true;
	}
	q->discards |= q->receiving && (r.status == 413 || (r.status && q->request->websocket));
	q->receiving &= !q->discards;
	bool ok = r.status     ? stream_answer(h, q, &r, out)
			  : r.upstream ? stream_pass_on(h, q, &r)
						   : stream_wait(h, q, r.job);
	if (q->counted) limits_return_requests(h->context->limits, &q->client, 1); /* it was answered at once */
	return ok ? HTTP2_NO_ERROR : HTTP2_INTERNAL_ERROR;
}

static bool is_connect(const struct request *request) {
	struct slice method = SLICE("CONNECT ");
	return !request->websocket && request->line.length > method.length &&
		   memcmp(request->line.at, method.at, method.length) == 0;
}

/* Refuses a request for itself, with a line in the log. */
static enum http2_error refuse(struct http2 *h, uint32_t id, const struct request *request, int status,
							   enum http2_error error, struct http2_output *out) {
	(void)stream_log(h, request, (struct slice){0}, status, 0);
	return reset(h, id, error, out);
}

/* Returns whether that is not known yet: what comes of the request is kept. */
static bool may_be_passed_on(const struct http2 *h, const struct stream *s) {
	return h->context->upstreams && s->waiting && waiting_for_job(s->waiting);
}

/* How the content of a request would be framed in HTTP/1.1. */
static void set_framing(struct request *q, bool receiving) {
	bool has_length = request_has(q, FIELD_CONTENT_LENGTH);
	if (!receiving || q->websocket) q->framing = BODY_NONE;
	else q->framing = has_length ? BODY_LENGTH : BODY_CHUNKED;
}

/* The request is complete. */
static enum http2_error take_trailers(struct http2 *h, struct stream *s, struct slice lines, struct http2_output *out) {
	if (s->pass && !stream_pass_put(h, s, (struct slice){0}, &lines)) return reset(h, s->id, HTTP2_PROTOCOL_ERROR, out);
	if (s->pass || !may_be_passed_on(h, s)) return HTTP2_NO_ERROR;
	s->early_trailers = lines.length;
	return stream_keep_early(h, s, lines) ? HTTP2_NO_ERROR : HTTP2_INTERNAL_ERROR;
}

/* A header block is complete. */
static enum http2_error take_block(struct http2 *h, uint32_t id, unsigned flags, const unsigned char *block,
								   size_t length, struct http2_output *out) {
	char *const text = WORKSPACE(HTTP2_TEXT);
	static _Thread_local struct request request;
	struct stream_request q = {
		.id = id, .request = &request, .priority = PRIORITY_DEFAULT, .receiving = !(flags & FRAME_FLAG_END_STREAM)};
	struct stream *open = stream_find(h, id);
	bool ignored = !open && was_reset(h, id); /* trailers, or behind the GOAWAY: decoded, but not answered */
	if (!open && !ignored) take_idle_priority(h, id, &q.priority);
	int status =
		http2_request_decode(h->inflater, block, length, open, h->context->upstreams, text, &request, &q.priority);
	bool malformed = status == -HTTP2_PROTOCOL_ERROR;
	if (status == 431) {
		if (!open && !ignored) stream_refuse_fields(h, id, out);
		return HTTP2_ENHANCE_YOUR_CALM;
	}
	if (status < 0 && !malformed) return (enum http2_error) - status;
	if (ignored) return HTTP2_NO_ERROR;
	if (open) { /* trailers */
		bool early = q.receiving || (open->has_length && open->received != open->expected);
		if (malformed || (early && !open->discards)) return reset(h, id, HTTP2_PROTOCOL_ERROR, out);
		open->receiving = false;
		return take_trailers(h, open, request.lines, out);
	}
	if (malformed) return refuse(h, id, &request, 400, HTTP2_PROTOCOL_ERROR, out);
	if (h->open >= HTTP2_STREAMS_MAX) return refuse(h, id, &request, 503, HTTP2_REFUSED_STREAM, out);
	if (!q.receiving && request.content_length) return refuse(h, id, &request, 400, HTTP2_PROTOCOL_ERROR, out);
	if (h->passing && http2_memory(h) > h->context->memory_max / 2) /* what it may become: see HTTP2_PASSED_CONTENT */
		return refuse(h, id, &request, 503, HTTP2_REFUSED_STREAM, out);
	set_framing(&request, q.receiving);
	q.discards = q.receiving && (status || is_connect(&request)); /* section 8.5: what follows is no content */
	q.receiving &= !q.discards;
	return answer_request(h, &q, status, out);
}

/* Its bit, and those of the streams between, were others'. */
static void note_highest(struct http2 *h, uint32_t id) {
	for (uint32_t n = id; n > h->highest && n > 1 && id - n < 2 * HTTP2_RESETS_REMEMBERED; n -= 2)
		*stream_reset_word(h, n) &= ~stream_reset_bit(n);
	h->highest = id;
}

/* Section 5.1.1: returns whether a header block may open this stream, or go on with it. */
static enum http2_error check_stream_id(struct http2 *h, uint32_t id) {
	struct stream *s = stream_find(h, id);
	if (id % 2 == 0 || (id < h->highest && !s && !was_reset(h, id))) return HTTP2_PROTOCOL_ERROR;
	if ((s && !s->receiving && !s->discards) || (!s && id == h->highest && !was_reset(h, id)))
		return HTTP2_STREAM_CLOSED;
	if (id > h->highest) note_highest(h, id);
	if (!h->draining) h->last_stream = h->highest;
	return HTTP2_NO_ERROR;
}

/* Keeps part of a header block. */
static enum http2_error keep_block(struct http2 *h, const unsigned char *part, size_t length) {
	unsigned char *grown = realloc(h->block, h->block_length + length + 1);
	if (!grown) return HTTP2_INTERNAL_ERROR;
	h->block = grown;
	memcpy(h->block + h->block_length, part, length);
	h->block_length += length;
	return HTTP2_NO_ERROR;
}

static enum http2_error take_headers(struct http2 *h, const struct frame *f, struct http2_output *out) {
	size_t padding = 0, skipped = 0;
	if (f->flags & FRAME_FLAG_PADDED) padding = f->length ? f->payload[skipped++] : FRAME_PAYLOAD_MAX;
	if (f->flags & FRAME_FLAG_PRIORITY) skipped += PRIORITY_LENGTH;
	enum http2_error error = check_stream_id(h, f->stream);
	if (error) return error;
	if (padding + skipped > f->length) return HTTP2_PROTOCOL_ERROR;
	const unsigned char *block = f->payload + skipped;
	size_t length = f->length - skipped - padding;
	/* a stream cannot depend on itself (RFC 7540, section 5.3.1) */
	if (f->flags & FRAME_FLAG_PRIORITY && (frame_get_32(block - PRIORITY_LENGTH) & HTTP2_WINDOW_MAX) == f->stream)
		return HTTP2_PROTOCOL_ERROR;
	if (f->flags & FRAME_FLAG_END_HEADERS) return take_block(h, f->stream, f->flags, block, length, out);
	h->block_length = 0;
	h->block_stream = f->stream;
	h->block_flags = f->flags;
	h->continuations = 0;
	return keep_block(h, block, length);
}

static enum http2_error take_continuation(struct http2 *h, const struct frame *f, struct http2_output *out) {
	bool ends = f->flags & FRAME_FLAG_END_HEADERS;
	if (!f->length && !ends && count_frame(h, HTTP2_FLOOD_EMPTY)) return HTTP2_ENHANCE_YOUR_CALM;
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

static enum http2_error take_data(struct http2 *h, const struct frame *f, struct http2_output *out) {
	struct stream *s = stream_find(h, f->stream);
	size_t padding = f->flags & FRAME_FLAG_PADDED ? (f->length ? f->payload[0] + 1U : FRAME_PAYLOAD_MAX) : 0;
	bool ends = f->flags & FRAME_FLAG_END_STREAM;
	h->receive_window -= f->length;
	if (is_idle(h, f->stream) || padding > f->length) return HTTP2_PROTOCOL_ERROR;
	if (h->receive_window < 0) return HTTP2_FLOW_CONTROL_ERROR;
	if (f->length == padding && !ends && count_frame(h, HTTP2_FLOOD_EMPTY)) return HTTP2_ENHANCE_YOUR_CALM;
	if (h->context->upstreams) h->room_changed = true;
	else stream_open_window(h, 0, &h->receive_window, HTTP2_WINDOW_DEFAULT, out);
	if (s ? s->discards : was_reset(h, f->stream)) return HTTP2_NO_ERROR;
	if (!s || !s->receiving) return reset(h, f->stream, HTTP2_STREAM_CLOSED, out);
	s->receive_window -= f->length;
	s->received += f->length - padding;
	s->receiving = !ends;
	if (s->receive_window < 0) return reset(h, s->id, HTTP2_FLOW_CONTROL_ERROR, out);
	if (s->has_length && (s->received > s->expected || (ends && s->received != s->expected)))
		return reset(h, s->id, HTTP2_PROTOCOL_ERROR, out);
	const struct slice content = {.at = (const char *)f->payload + (padding > 0), .length = f->length - padding},
					   no_trailers = {0};
	if (s->pass)
		return stream_pass_put(h, s, content, ends ? &no_trailers : NULL) ? HTTP2_NO_ERROR
																		  : reset(h, s->id, HTTP2_PROTOCOL_ERROR, out);
	if (s->received > BODY_MAX) return reset(h, s->id, HTTP2_ENHANCE_YOUR_CALM, out);
	if (may_be_passed_on(h, s)) return stream_keep_early(h, s, content) ? HTTP2_NO_ERROR : HTTP2_INTERNAL_ERROR;
	if (!ends) stream_open_window(h, s->id, &s->receive_window, HTTP2_WINDOW_DEFAULT, out);
	return HTTP2_NO_ERROR;
}

/* --- the other frames --- */

/* What it says has no meaning any more (RFC 9113, section 5.3.2). */
static enum http2_error take_priority(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (count_frame(h, HTTP2_FLOOD_OTHERS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (f->length != PRIORITY_LENGTH) return reset(h, f->stream, HTTP2_FRAME_SIZE_ERROR, out);
	bool itself = (frame_get_32(f->payload) & HTTP2_WINDOW_MAX) == f->stream;
	return itself ? reset(h, f->stream, HTTP2_PROTOCOL_ERROR, out) : HTTP2_NO_ERROR;
}

/* Streams with a priority count with the open ones (RFC 9218, section 7.1). */
static enum http2_error keep_idle_priority(struct http2 *h, uint32_t id, struct priority priority) {
	unsigned at = 0;
	if (!h->idle && !(h->idle = calloc(1, sizeof *h->idle))) return HTTP2_NO_ERROR; /* it is a hint */
	while (at < h->idle->count && h->idle->stream[at].id != id) at++;
	if (at == h->idle->count && at + h->open >= HTTP2_STREAMS_MAX) return HTTP2_PROTOCOL_ERROR;
	h->idle->count += at == h->idle->count;
	h->idle->stream[at].id = id;
	h->idle->stream[at].priority = priority;
	return HTTP2_NO_ERROR;
}

/* RFC 9218, section 7.1. Streams with even numbers are those that only we could open, by a push. */
static enum http2_error take_priority_update(struct http2 *h, const struct frame *f) {
	if (count_frame(h, HTTP2_FLOOD_OTHERS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (f->length < NUMBER_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	uint32_t id = frame_get_32(f->payload) & HTTP2_WINDOW_MAX;
	if (id % 2 == 0) return HTTP2_PROTOCOL_ERROR;
	struct stream *s = stream_find(h, id);
	struct slice value = {.at = (const char *)f->payload + NUMBER_LENGTH, .length = f->length - NUMBER_LENGTH};
	struct priority priority = PRIORITY_DEFAULT;
	priority_parse(value, &priority);
	if (s) stream_set_priority(h, s, priority);
	return !s && id > h->highest ? keep_idle_priority(h, id, priority) : HTTP2_NO_ERROR;
}

static enum http2_error take_reset(struct http2 *h, const struct frame *f) {
	struct stream *s = stream_find(h, f->stream);
	if (f->length != NUMBER_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	if (is_idle(h, f->stream)) return HTTP2_PROTOCOL_ERROR;
	if (count_frame(h, HTTP2_FLOOD_RESETS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (s) stream_close(h, s);
	return HTTP2_NO_ERROR;
}

static enum http2_error set_initial_window(struct http2 *h, int64_t value) {
	for (struct stream *s = h->first; s; s = s->next) {
		s->send_window += value - h->initial_window;
		if (s->send_window > HTTP2_WINDOW_MAX) return HTTP2_FLOW_CONTROL_ERROR;
	}
	h->initial_window = value;
	return HTTP2_NO_ERROR;
}

/* *window: what the frame says so far of the initial one. */
static enum http2_error take_setting(struct http2 *h, unsigned name, uint32_t value, int64_t *window) {
	switch (name) {
	case HTTP2_SETTING_HEADER_TABLE_SIZE: h->shrink_table |= value < NGHTTP2_DEFAULT_HEADER_TABLE_SIZE; break;
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
	enum http2_error error = count_frame(h, HTTP2_FLOOD_SETTINGS);
	if (f->length % HTTP2_SETTING_LENGTH || (ack && f->length)) return HTTP2_FRAME_SIZE_ERROR;
	for (const unsigned char *at = f->payload; !error && at < f->payload + f->length; at += HTTP2_SETTING_LENGTH)
		error = take_setting(h, (unsigned)at[0] << 8 | at[1], frame_get_32(at + 2), &window);
	if (!error) error = set_initial_window(h, window);
	if (!error && !ack) http2_output_frame(h, out, FRAME_SETTINGS, FRAME_FLAG_ACK, 0, NULL, 0);
	return error;
}

static enum http2_error take_ping(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (f->length != PING_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	if (count_frame(h, HTTP2_FLOOD_PINGS)) return HTTP2_ENHANCE_YOUR_CALM;
	if (!(f->flags & FRAME_FLAG_ACK)) http2_output_frame(h, out, FRAME_PING, FRAME_FLAG_ACK, 0, f->payload, f->length);
	else if (h->announced && memcmp(f->payload, drain_ping, sizeof drain_ping) == 0) http2_drain(h, out);
	return HTTP2_NO_ERROR;
}

static enum http2_error take_window_update(struct http2 *h, const struct frame *f, struct http2_output *out) {
	if (f->length != NUMBER_LENGTH) return HTTP2_FRAME_SIZE_ERROR;
	if (f->stream && is_idle(h, f->stream)) return HTTP2_PROTOCOL_ERROR;
	if (count_frame(h, HTTP2_FLOOD_UPDATES)) return HTTP2_ENHANCE_YOUR_CALM;
	uint32_t more = frame_get_32(f->payload) & HTTP2_WINDOW_MAX;
	struct stream *s = f->stream ? stream_find(h, f->stream) : NULL;
	int64_t *window = s ? &s->send_window : &h->send_window;
	if (f->stream && !s) return HTTP2_NO_ERROR; /* it has just been closed */
	*window += more;
	if (more && *window <= HTTP2_WINDOW_MAX) return HTTP2_NO_ERROR;
	enum http2_error error = more ? HTTP2_FLOW_CONTROL_ERROR : HTTP2_PROTOCOL_ERROR;
	return s ? reset(h, s->id, error, out) : error;
}

/* Section 6: which frames are of the connection, and which of a stream. */
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
	case FRAME_DATA: return take_data(h, f, out);
	case FRAME_HEADERS: return take_headers(h, f, out);
	case FRAME_PRIORITY: return take_priority(h, f, out);
	case FRAME_RST_STREAM: return take_reset(h, f);
	case FRAME_SETTINGS: return take_settings(h, f, out);
	case FRAME_PING: return take_ping(h, f, out);
	case FRAME_GOAWAY: h->leaving = true; return f->length < GOAWAY_LENGTH ? HTTP2_FRAME_SIZE_ERROR : HTTP2_NO_ERROR;
	case FRAME_WINDOW_UPDATE: return take_window_update(h, f, out);
	case FRAME_CONTINUATION: return take_continuation(h, f, out);
	case FRAME_PRIORITY_UPDATE: return take_priority_update(h, f);
	default: return count_frame(h, HTTP2_FLOOD_OTHERS);
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

size_t http2_receive(struct http2 *h, const char *data, size_t length, struct http2_output *out) {
	size_t at = h->preface < preface.length && length ? take_preface(h, data, length, out) : 0;
	struct frame f = {0};
	while (!h->failed) {
		size_t n = frame_read(&f, data + at, length - at);
		enum http2_error error = HTTP2_NO_ERROR;
		if (f.length > FRAME_PAYLOAD_MAX) error = HTTP2_FRAME_SIZE_ERROR;
		else if (n == 0) break;
		else error = take_frame(h, &f, out);
		if (!error && http2_memory(h) > h->context->memory_max) error = HTTP2_ENHANCE_YOUR_CALM;
		if (error) go_away(h, error, out);
		at += n;
	}
	return h->failed ? length : at;
}

bool http2_sendable(const struct http2 *h) { return !h->failed && stream_sendable(h); }

bool http2_next(struct http2 *h, struct http2_piece *content, struct http2_output *out) {
	return stream_next(h, content, out);
}

void http2_postpone(struct http2 *h, const struct http2_piece *content) {
	content->stream->postponed = h->postpones = true;
}

void http2_go_on(struct http2 *h) {
	for (struct stream *s = h->postpones ? h->first : NULL; s; s = s->next) s->postponed = false;
	h->postpones = false;
}

void http2_write(struct http2 *h, const struct http2_piece *content, ssize_t length, struct http2_output *out) {
	stream_write(h, content, length, out);
}
