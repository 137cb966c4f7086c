/* http2_output.c - see session.h: output, windows and counts of frames, memory, and what HTTP/2 does in its own way. */
#include "gatling/http2/http2.h"
#include "gatling/http2/session.h"

/* --- frames --- */

void http2_output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags,
						uint32_t stream, const void *payload, size_t length) {
	if (http2_output_room(out) < FRAME_HEADER + length) {
		h->streams.failed = h->draining = true;
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

size_t http2_put_table_size(struct http2 *h, char *at) {
	size_t n = h->shrink_table;
	if (n) *at = 0x20; /* dynamic table size update: 0 */
	h->shrink_table = false;
	return n;
}

void http2_output_block(struct http2 *h, struct http2_output *out, uint32_t id, struct slice block, bool end) {
	enum frame_type type = FRAME_HEADERS;
	while (block.length) {
		size_t n = block.length < FRAME_PAYLOAD_MAX ? block.length : FRAME_PAYLOAD_MAX - 1;
		unsigned flags = (type == FRAME_HEADERS && end ? FRAME_FLAG_END_STREAM : 0) |
						 (n == block.length ? FRAME_FLAG_END_HEADERS : 0);
		char *payload = out->at + FRAME_HEADER;
		size_t first = type == FRAME_HEADERS ? http2_put_table_size(h, payload) : 0;
		memcpy(payload + first, block.at, n);
		out->at = frame_header(out->at, first + n, type, flags, id) + first + n;
		block.at += n;
		block.length -= n;
		type = FRAME_CONTINUATION;
	}
}

size_t http2_block_frames(size_t length) { return length + 1 + (length / (FRAME_PAYLOAD_MAX - 1) + 1) * FRAME_HEADER; }

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

/* --- the end of a stream --- */

/* Return the word and the bit of a stream in was_reset. */
static uint64_t *reset_word(struct http2 *h, uint32_t id) {
	return &h->was_reset[id / 2 % HTTP2_RESETS_REMEMBERED / 64];
}
static uint64_t reset_bit(uint32_t id) { return UINT64_C(1) << id / 2 % 64; }

/* Clears the bits of the streams up to id, where older streams had used them. */
void http2_note_highest(struct http2 *h, uint32_t id) {
	for (uint32_t n = id; n > h->highest && n > 1 && id - n < 2 * HTTP2_RESETS_REMEMBERED; n -= 2)
		*reset_word(h, n) &= ~reset_bit(n);
	h->highest = id;
}

void http2_note_reset(struct http2 *h, uint32_t id) {
	if (id + 2 * HTTP2_RESETS_REMEMBERED > h->highest) *reset_word(h, id) |= reset_bit(id);
}

enum http2_error http2_reset(struct http2 *h, uint32_t id, enum http2_error error, struct http2_output *out) {
	struct stream *s = stream_find(&h->streams, id);
	if (s) stream_close(s);
	http2_note_reset(h, id);
	if (http2_count_frame(h, HTTP2_FLOOD_RESETS)) return HTTP2_ENHANCE_YOUR_CALM;
	http2_output_number(h, out, FRAME_RST_STREAM, id, error);
	return HTTP2_NO_ERROR;
}

bool http2_was_reset(struct http2 *h, uint32_t id) {
	if (id > h->last_stream || id + 2 * HTTP2_RESETS_REMEMBERED <= h->highest) return true; /* or past the GOAWAY */
	return *reset_word(h, id) & reset_bit(id);
}

void http2_end_stream(struct http2 *h, struct stream *s, struct http2_output *out) {
	if (s->discards || s->receiving) { /* RFC 9113, section 8.1: the rest of the request is not needed */
		http2_output_number(h, out, FRAME_RST_STREAM, (uint32_t)s->id, HTTP2_NO_ERROR);
		http2_note_reset(h, (uint32_t)s->id);
	}
	stream_close(s);
}

/* --- windows --- */

void http2_open_window(struct http2 *h, uint32_t id, int64_t *window, int64_t most, struct http2_output *out) {
	if (most - *window <= HTTP2_WINDOW_DEFAULT / 2) return;
	http2_output_number(h, out, FRAME_WINDOW_UPDATE, id, (uint32_t)(most - *window));
	*window = most;
}

void http2_make_room(struct http2 *h, struct http2_output *out) {
	enum { UPDATE = FRAME_HEADER + 4 };
	struct streams *t = &h->streams;
	int64_t held = 0;
	if (!t->room_changed || http2_output_room(out) < (t->open + 1) * UPDATE) return;
	t->room_changed = false;
	for (struct stream *s = t->first; s; s = s->next) {
		const int64_t here = (int64_t)stream_held(s);
		held += here;
		if (s->receiving && !stream_waits_for_job(s))
			http2_open_window(h, (uint32_t)s->id, &s->receive_window, HTTP2_WINDOW_DEFAULT - here, out);
	}
	streams_feed(t);
	http2_open_window(h, 0, &h->receive_window, STREAMS_PASSED_CONTENT - held, out);
}

static void opened(struct stream *s) {
	s->send_window = http2_of(s->streams)->initial_window;
	s->receive_window = HTTP2_WINDOW_DEFAULT;
}

static size_t stream_room(const struct stream *s) { return s->send_window > 0 ? (size_t)s->send_window : 0; }

static bool takes(const struct streams *t) { return http2_of(t)->send_window > 0; }

static bool receives(const struct streams *t) { return http2_of(t)->receive_window >= HTTP2_WINDOW_DEFAULT / 2; }

const struct streams_protocol http2_protocol = {.carrier = &streams_http2,
												.status = hpack_status,
												.fields = hpack_fields,
												.opened = opened,
												.stream_room = stream_room,
												.takes = takes,
												.receives = receives};

/* --- memory --- */

/* Estimates the bytes that nghttp2 takes: those that RFC 7541, section 4.1 counts, and overhead. */
static size_t table_memory(nghttp2_hd_inflater *inflater) {
	enum { STATIC_ENTRIES = 61, ENTRY = 128, INFLATER = 2048 };
	size_t entries = nghttp2_hd_inflate_get_num_table_entries(inflater) - STATIC_ENTRIES;
	return INFLATER + entries * ENTRY + nghttp2_hd_inflate_get_dynamic_table_size(inflater);
}

size_t http2_memory(const struct http2 *h) {
	const size_t unopened = h->unopened ? unopened_memory(h->unopened) : 0;
	return sizeof *h + h->streams.memory + h->block_length + unopened + table_memory(h->inflater);
}
