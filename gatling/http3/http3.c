/* http3.c - see http3.h: the streams of a session, and the frames that come on them. */
#include "gatling/http3/http3.h"

#include <stdlib.h>

#include "gatling/http3/session.h"

/* Types of unidirectional streams (RFC 9114, section 6.2; RFC 9204, section 4.2). */
enum { TYPE_CONTROL = 0, TYPE_PUSH = 1, TYPE_ENCODER = 2, TYPE_DECODER = 3 };

/* Settings (RFC 9114, section 7.2.4.1; RFC 9220, section 3). */
enum { SETTING_MAX_FIELD_SECTION_SIZE = 6, SETTING_ENABLE_CONNECT_PROTOCOL = 8 };

/* Bytes of the payload of a frame that is read as a whole, apart from HEADERS. */
enum { PAYLOAD_MAX = 4096 };

/* Of the streams that the client opens in both directions (RFC 9000, section 2.1). */
enum { REQUEST_ID_STEP = 4 };
#define REQUEST_ID_LAST ((UINT64_C(1) << 62) - REQUEST_ID_STEP)

struct http3 *http3_new(const struct http3_context *context, const struct http3_transport *transport, void *connection,
						const struct peer *peer, enum forwarding forwarding, unsigned port) {
	struct http3 *h = calloc(1, sizeof *h);
	if (!h) return NULL;
	h->context = context;
	h->transport = transport;
	h->highest = -1;
	h->goaway = UINT64_MAX;
	h->streams.exchanges = context->exchanges;
	h->streams.protocol = &http3_protocol;
	h->streams.common_block = &context->common_block;
	streams_begin(&h->streams, &transport->connection, connection, peer, forwarding, port, true);
	return h;
}

static void free_stream(struct http3 *h, struct http3_stream *q) {
	if (q->stream) stream_close(q->stream);
	http3_free_chunks(h, q);
	h->received -= q->payload_room;
	free(q->payload);
	if (q->previous) q->previous->next = q->next;
	else h->all = q->next;
	if (q->next) q->next->previous = q->previous;
	h->requests -= q->kind == HTTP3_REQUEST;
	free(q);
}

enum http3_error http3_close(struct http3 *h, struct http3_stream *q) {
	const bool unanswered = q->kind == HTTP3_REQUEST && !q->end_sent, own = q == h->own;
	if (q->owed) h->transport->consumed(h->streams.connection, q->id, q->owed);
	free_stream(h, q);
	if (own) h->own = NULL;
	if (own) return HTTP3_CLOSED_CRITICAL_STREAM; /* the client has stopped it */
	return unanswered ? http3_count(h, HTTP3_FLOOD_RESETS) : HTTP3_OK;
}

void http3_free(struct http3 *h) {
	if (!h) return;
	while (h->all) free_stream(h, h->all);
	while (h->streams.first) stream_close(h->streams.first);
	free(h->unopened);
	free(h);
}

struct streams *http3_streams(struct http3 *h) {
	return &h->streams;
}

/* Returns whether there is a request whose head has come. Of others, a client could begin one after the other. */
static bool has_request(const struct http3 *h) {
	const struct http3_stream *q = h->requests ? h->all : NULL;
	while (q && !(q->kind == HTTP3_REQUEST && q->has_head)) q = q->next;
	return q;
}

struct waiting http3_wait(const struct http3 *h) {
	struct waiting wait = streams_wait(&h->streams);
	if (wait.what == WAIT_REQUEST && has_request(h)) wait.what = WAIT_CLIENT_TAKES;
	return wait;
}

bool http3_receives_head(const struct http3 *h, int64_t before_ms) {
	const struct http3_stream *q = h->requests ? h->all : NULL;
	while (q && (q->kind != HTTP3_REQUEST || q->has_head || q->deaf || q->opened_ms >= before_ms)) q = q->next;
	return q;
}

bool http3_end_late(struct http3 *h, int64_t since_ms) {
	bool any = false;
	for (struct http3_stream *q = h->requests ? h->all : NULL; q; q = q->next) {
		if (q->kind != HTTP3_REQUEST || q->has_head || q->deaf || q->opened_ms > since_ms) continue;
		http3_reset(h, q, HTTP3_REQUEST_REJECTED); /* nothing has been done for it */
		any = true;
	}
	return any;
}

size_t http3_kept(const struct http3 *h) { return unopened_memory(h->unopened) + h->streams.memory + h->received; }

size_t http3_memory(const struct http3 *h) { return sizeof *h + http3_kept(h) + (size_t)h->unacknowledged; }

uint64_t http3_transferred(const struct http3 *h) { return h->transferred; }

static struct http3_stream *add_stream(struct http3 *h, int64_t id, enum http3_kind kind) {
	struct http3_stream *q = calloc(1, sizeof *q);
	if (!q) return NULL;
	q->id = id;
	q->opened_ms = h->context->exchanges->site->now_ms;
	q->kind = kind;
	h->requests += kind == HTTP3_REQUEST;
	q->next = h->all;
	if (q->next) q->next->previous = q;
	h->all = q;
	return q;
}

struct http3_stream *http3_open(struct http3 *h, int64_t id) {
	const bool request = !(id & 2); /* RFC 9000, section 2.1 */
	struct http3_stream *q = add_stream(h, id, request ? HTTP3_REQUEST : HTTP3_UNKNOWN);
	if (q && request && id > h->highest && !h->draining) h->highest = id;
	return q;
}

bool http3_integer(struct slice *data, uint64_t *n) {
	if (!data->length) return false;
	const unsigned char *p = (const unsigned char *)data->at;
	const size_t length = (size_t)1 << (p[0] >> 6);
	if (data->length < length) return false;
	*n = p[0] & 0x3f;
	for (size_t i = 1; i < length; i++) *n = *n << 8 | p[i];
	*data = slice_rest(*data, length);
	return true;
}

static char *put_small(char *at, unsigned n) { /* n < 64 */
	*at = (char)n;
	return at + 1;
}

struct http3_stream *http3_begin(struct http3 *h, int64_t id) {
	char settings[8], type = TYPE_CONTROL, *at = put_small(settings, SETTING_MAX_FIELD_SECTION_SIZE);
	at = http3_put_integer(at, REQUEST_LIST_MAX);
	if (h->context->exchanges->upstreams) at = put_small(put_small(at, SETTING_ENABLE_CONNECT_PROTOCOL), 1);
	h->own = add_stream(h, id, HTTP3_OWN);
	const struct slice payload = {.at = settings, .length = (size_t)(at - settings)};
	if (!h->own || !http3_put(h, h->own, (struct slice){.at = &type, .length = 1}) ||
		!http3_put_frame(h, h->own, HTTP3_FRAME_SETTINGS, payload))
		return NULL;
	return h->own;
}

enum http3_error http3_count(struct http3 *h, enum http3_flood kind) {
	static const unsigned most[HTTP3_FLOODS] = {
		[HTTP3_FLOOD_OTHERS] = HTTP3_OTHERS, [HTTP3_FLOOD_RESETS] = HTTP3_RESETS};
	const int64_t second = h->context->exchanges->site->now_ms / 1000;
	if (second != h->second) memset(h->count, 0, sizeof h->count);
	h->second = second;
	return ++h->count[kind] <= most[kind] ? HTTP3_OK : HTTP3_EXCESSIVE_LOAD;
}

/* --- the control stream --- */

/* Sets the priority of a request, or keeps it for one that is still to come. */
static enum http3_error take_priority_update(struct http3 *h, struct slice payload) {
	uint64_t id;
	if (!http3_integer(&payload, &id)) return HTTP3_FRAME_ERROR;
	if (id % REQUEST_ID_STEP) return HTTP3_ID_ERROR;
	struct stream *s = stream_find(&h->streams, id);
	struct priority priority = PRIORITY_DEFAULT;
	priority_parse(payload, &priority);
	if (s) stream_set_priority(s, priority);
	if (s || (int64_t)id <= h->highest) return HTTP3_OK;
	/* one above what the client may open is wrong (RFC 9218, section 7.2), and only a hint here */
	return unopened_keep(&h->unopened, id, priority, STREAMS_MAX - h->streams.open) ? HTTP3_OK : HTTP3_EXCESSIVE_LOAD;
}

/* Checks the settings, none of which change what the server does: it uses no dynamic table. */
static enum http3_error take_settings(struct http3 *h, struct slice payload) {
	uint64_t name, value, seen = 0;
	if (h->settled) return HTTP3_FRAME_UNEXPECTED;
	h->settled = true;
	while (payload.length) {
		if (!http3_integer(&payload, &name) || !http3_integer(&payload, &value)) return HTTP3_FRAME_ERROR;
		if (name >= 2 && name <= 5) return HTTP3_SETTINGS_ERROR; /* of HTTP/2 */
		if (name < 64 && seen >> name & 1) return HTTP3_SETTINGS_ERROR;
		if (name < 64) seen |= UINT64_C(1) << name;
		if (name == SETTING_ENABLE_CONNECT_PROTOCOL && value > 1) return HTTP3_SETTINGS_ERROR;
	}
	return HTTP3_OK;
}

/* Checks a frame that has one number, the ID of a push, and nothing else: the server never pushes. MAX_PUSH_ID may only
 * go up, and GOAWAY down (RFC 9114, sections 5.2, 7.2.3 and 7.2.7). */
static enum http3_error take_push_id(struct http3 *h, uint64_t type, struct slice payload) {
	uint64_t id;
	if (!http3_integer(&payload, &id) || payload.length) return HTTP3_FRAME_ERROR;
	if (type == HTTP3_FRAME_CANCEL_PUSH) return HTTP3_ID_ERROR;
	uint64_t *last = type == HTTP3_FRAME_GOAWAY ? &h->goaway : &h->max_push_id;
	const bool wrong = type == HTTP3_FRAME_GOAWAY ? id > *last : id < *last;
	*last = id;
	return wrong ? HTTP3_ID_ERROR : HTTP3_OK;
}

static enum http3_error take_control_frame(struct http3 *h, uint64_t type, struct slice payload) {
	switch (type) {
	case HTTP3_FRAME_SETTINGS: return take_settings(h, payload);
	case HTTP3_FRAME_PRIORITY_UPDATE: return take_priority_update(h, payload);
	case HTTP3_FRAME_PUSH_PRIORITY_UPDATE: return HTTP3_ID_ERROR; /* RFC 9218, section 7.2 */
	default: return take_push_id(h, type, payload);
	}
}

/* Returns whether the payload of a frame of the control stream is read. */
static bool is_of_control(uint64_t type) {
	return type == HTTP3_FRAME_SETTINGS || type == HTTP3_FRAME_PRIORITY_UPDATE ||
		   type == HTTP3_FRAME_PUSH_PRIORITY_UPDATE || type == HTTP3_FRAME_CANCEL_PUSH || type == HTTP3_FRAME_GOAWAY ||
		   type == HTTP3_FRAME_MAX_PUSH_ID;
}

/* Checks whether a frame may come on the control stream (RFC 9114, section 7.2). */
static enum http3_error check_control_frame(struct http3 *h, uint64_t type, uint64_t length) {
	if (!h->settled && type != HTTP3_FRAME_SETTINGS) return HTTP3_MISSING_SETTINGS;
	if (type == HTTP3_FRAME_DATA || type == HTTP3_FRAME_HEADERS || type == HTTP3_FRAME_PUSH_PROMISE)
		return HTTP3_FRAME_UNEXPECTED;
	if (length > PAYLOAD_MAX && is_of_control(type)) return HTTP3_EXCESSIVE_LOAD;
	return type == HTTP3_FRAME_SETTINGS ? HTTP3_OK : http3_count(h, HTTP3_FLOOD_OTHERS);
}

/* --- frames --- */

static bool is_of_http2(uint64_t type) { return type == 2 || type == 6 || type == 8 || type == 9; }

static enum http3_error check_request_frame(struct http3 *h, const struct http3_stream *q, uint64_t type,
											uint64_t length) {
	switch (type) {
	case HTTP3_FRAME_HEADERS: return q->has_trailers ? HTTP3_FRAME_UNEXPECTED : HTTP3_OK;
	case HTTP3_FRAME_DATA:
		if (!q->has_head || q->has_trailers) return HTTP3_FRAME_UNEXPECTED;
		return length ? HTTP3_OK : http3_count(h, HTTP3_FLOOD_OTHERS);
	case HTTP3_FRAME_CANCEL_PUSH:
	case HTTP3_FRAME_SETTINGS:
	case HTTP3_FRAME_PUSH_PROMISE:
	case HTTP3_FRAME_GOAWAY:
	case HTTP3_FRAME_MAX_PUSH_ID:
	case HTTP3_FRAME_PRIORITY_UPDATE:
	case HTTP3_FRAME_PUSH_PRIORITY_UPDATE: return HTTP3_FRAME_UNEXPECTED;
	default: return http3_count(h, HTTP3_FLOOD_OTHERS);
	}
}

/* Returns whether the payload of the frame is collected. */
static bool is_collected(const struct http3_stream *q) {
	if (q->kind == HTTP3_REQUEST) return q->frame == HTTP3_FRAME_HEADERS;
	return is_of_control(q->frame);
}

/* Moves bytes to q->head until the integers there are complete, of which there are two. Returns false if more are
 * needed. */
static bool gather(struct http3_stream *q, struct slice *data, uint64_t n[2], int wanted) {
	while (data->length) {
		q->head[q->head_length++] = (unsigned char)*data->at;
		*data = slice_rest(*data, 1);
		struct slice head = {.at = (const char *)q->head, .length = q->head_length};
		if (!http3_integer(&head, &n[0]) || (wanted == 2 && !http3_integer(&head, &n[1]))) continue;
		q->head_length = 0;
		return true;
	}
	return false;
}

/* Keeps part of a payload. Returns false without memory. */
static bool collect(struct http3 *h, struct http3_stream *q, struct slice part) {
	if (!q->payload) {
		const size_t room = part.length + (size_t)q->left;
		if (!(q->payload = malloc(room))) return false;
		q->payload_room = room;
		h->received += room; /* however little of it has come */
	}
	memcpy(q->payload + q->payload_length, part.at, part.length);
	q->payload_length += part.length;
	return true;
}

/* Handles the whole payload of a frame. */
static enum http3_error take_payload(struct http3 *h, struct http3_stream *q, struct slice payload, bool ends) {
	if (q->kind == HTTP3_CONTROL) return take_control_frame(h, q->frame, payload);
	return http3_take_section(h, q, payload, ends);
}

/* Handles part of the payload of a frame. ends: nothing follows it on the stream. */
static enum http3_error take_part(struct http3 *h, struct http3_stream *q, struct slice part, bool ends) {
	const bool whole = !q->left;
	if (q->deaf) return HTTP3_OK;
	if (!is_collected(q)) {
		const bool content = q->kind == HTTP3_REQUEST && q->frame == HTTP3_FRAME_DATA;
		return content ? http3_take_content(h, q, part, ends) : HTTP3_OK;
	}
	if (whole && !q->payload) return take_payload(h, q, part, ends);
	if (!collect(h, q, part)) return HTTP3_INTERNAL_ERROR;
	if (!whole) return HTTP3_OK;
	char *payload = q->payload;
	const struct slice all = {.at = payload, .length = q->payload_length};
	q->payload = NULL;
	h->received -= q->payload_room;
	q->payload_length = q->payload_room = 0;
	const enum http3_error error = take_payload(h, q, all, ends);
	free(payload);
	return error;
}

/* Begins a frame, whose type and length have come. */
static enum http3_error begin_frame(struct http3 *h, struct http3_stream *q, uint64_t type, uint64_t length) {
	if (is_of_http2(type)) return HTTP3_FRAME_UNEXPECTED;
	const enum http3_error error =
		q->kind == HTTP3_CONTROL ? check_control_frame(h, type, length) : check_request_frame(h, q, type, length);
	q->frame = type;
	q->left = length;
	q->in_frame = true;
	if (!error && q->kind == HTTP3_REQUEST && type == HTTP3_FRAME_HEADERS && length > HTTP3_SECTION_MAX)
		return http3_refuse_section(h, q);
	return error;
}

/* Handles bytes of a stream with frames: the client's control stream, or a request. */
static enum http3_error take_frames(struct http3 *h, struct http3_stream *q, struct slice data, bool ends) {
	enum http3_error error = HTTP3_OK;
	while (!error && !q->deaf && (data.length || (q->in_frame && !q->left))) {
		uint64_t n[2];
		if (!q->in_frame) {
			if (gather(q, &data, n, 2)) error = begin_frame(h, q, n[0], n[1]);
			continue;
		}
		const struct slice part = slice_first(data, data.length < q->left ? data.length : (size_t)q->left);
		data = slice_rest(data, part.length);
		q->left -= part.length;
		q->in_frame = q->left;
		error = take_part(h, q, part, ends && !data.length);
	}
	return error;
}

/* Handles the type of a unidirectional stream. */
static enum http3_error set_kind(struct http3 *h, struct http3_stream *q, uint64_t type) {
	q->kind = type == TYPE_CONTROL   ? HTTP3_CONTROL
			  : type == TYPE_ENCODER ? HTTP3_ENCODER
			  : type == TYPE_DECODER ? HTTP3_DECODER
									 : HTTP3_IGNORED;
	if (type == TYPE_PUSH) return HTTP3_STREAM_CREATION_ERROR;
	if (q->kind == HTTP3_IGNORED) h->transport->stop(h->streams.connection, q->id, HTTP3_STREAM_CREATION_ERROR);
	if (q->kind != HTTP3_IGNORED && h->has[q->kind]) return HTTP3_STREAM_CREATION_ERROR;
	h->has[q->kind] = true;
	return HTTP3_OK;
}

/* Handles the instructions of the client's encoder: with a table of 0 bytes it may only set that size (RFC 9204,
 * section 4.3.1). */
static enum http3_error take_instructions(struct slice data) {
	while (data.length && *data.at == 0x20) data = slice_rest(data, 1);
	return data.length ? QPACK_ENCODER_STREAM_ERROR : HTTP3_OK;
}

/* Handles the instructions of the client's decoder (RFC 9204, section 4.4). It may cancel streams; nothing else has
 * been sent that it could acknowledge. */
static enum http3_error take_decoder(struct http3_stream *q, struct slice data) {
	enum { CANCELLATION = 0x40, KIND = 0xc0, PREFIX = 0x3f, MORE = 0x80 };
	for (size_t i = 0; i < data.length; i++) {
		const unsigned char c = (unsigned char)data.at[i];
		if (!q->in_frame && (c & KIND) != CANCELLATION) return QPACK_DECODER_STREAM_ERROR;
		q->in_frame = q->in_frame ? c & MORE : (c & PREFIX) == PREFIX; /* the rest of an integer follows */
	}
	return HTTP3_OK;
}

static enum http3_error receive(struct http3 *h, struct http3_stream *q, struct slice data, bool ends) {
	uint64_t n[2];
	if (q->kind == HTTP3_UNKNOWN && gather(q, &data, n, 1)) {
		const enum http3_error error = set_kind(h, q, n[0]);
		if (error) return error;
	}
	switch (q->kind) {
	case HTTP3_CONTROL:
	case HTTP3_REQUEST: return take_frames(h, q, data, ends);
	case HTTP3_ENCODER: return take_instructions(data);
	case HTTP3_DECODER: return take_decoder(q, data);
	default: return HTTP3_OK;
	}
}

/* Handles the end of what the client sends. */
static enum http3_error end_input(struct http3 *h, struct http3_stream *q) {
	if (q->kind == HTTP3_CONTROL || q->kind == HTTP3_ENCODER || q->kind == HTTP3_DECODER)
		return HTTP3_CLOSED_CRITICAL_STREAM;
	if (q->kind != HTTP3_REQUEST || q->deaf) return HTTP3_OK;
	if (q->in_frame || q->head_length) return HTTP3_FRAME_ERROR;
	if (!q->has_head) {
		http3_reset(h, q, HTTP3_REQUEST_INCOMPLETE);
		return HTTP3_OK;
	}
	/* what has come last was not known to be the end, unless it came with it */
	const bool open = q->stream && q->stream->receiving;
	return open ? http3_take_content(h, q, (struct slice){.at = "", .length = 0}, true) : HTTP3_OK;
}

enum http3_error http3_receive(struct http3 *h, struct http3_stream *q, struct slice data, bool ends) {
	q->owed += data.length;
	h->transferred += data.length;
	enum http3_error error = q->deaf ? HTTP3_OK : receive(h, q, data, ends);
	if (!error && ends) error = end_input(h, q);
	if (!error && http3_memory(h) > h->context->memory_max + HTTP3_UNACKNOWLEDGED) error = HTTP3_EXCESSIVE_LOAD;
	h->streams.room_changed = true;
	return error;
}

enum http3_error http3_received(struct http3 *h) {
	if (h->streams.unflushed) streams_flush(&h->streams);
	http3_make_room(h);
	return h->streams.failed ? HTTP3_INTERNAL_ERROR : HTTP3_OK;
}

enum http3_error http3_cancelled(struct http3 *h, struct http3_stream *q) {
	if (q->kind == HTTP3_UNKNOWN || q->kind == HTTP3_IGNORED) return HTTP3_OK;
	if (q->kind != HTTP3_REQUEST) return HTTP3_CLOSED_CRITICAL_STREAM;
	if (!q->deaf || q->stream) http3_reset(h, q, HTTP3_REQUEST_CANCELLED);
	return HTTP3_OK;
}

/* --- the end --- */

/* Sends a GOAWAY: requests from this ID on will not be answered. */
static void put_goaway(struct http3 *h, uint64_t id) {
	char payload[8];
	for (int i = 7; i >= 0; i--, id >>= 8) payload[i] = (char)id;
	payload[0] |= (char)0xc0; /* an integer of 8 bytes */
	if (h->own && !http3_put_frame(h, h->own, HTTP3_FRAME_GOAWAY, (struct slice){.at = payload, .length = 8}))
		h->streams.failed = true;
}

void http3_announce_end(struct http3 *h) {
	if (h->announced || h->draining) return;
	h->announced = true;
	put_goaway(h, REQUEST_ID_LAST);
}

bool http3_drain(struct http3 *h) {
	if (h->draining) return false;
	h->draining = true;
	put_goaway(h, h->highest < 0 ? 0 : (uint64_t)h->highest + REQUEST_ID_STEP);
	return true;
}

bool http3_ended(const struct http3 *h) {
	return h->streams.failed || (h->draining && !h->requests && !h->unacknowledged);
}
