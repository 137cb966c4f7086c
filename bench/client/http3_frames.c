/* http3_frames.c - see http3_frames.h. */
#include "bench/client/http3_frames.h"

#include <stdlib.h>
#include <string.h>

size_t http3_number(const char *data, size_t length, uint64_t *number) {
	if (!length) return 0;
	const size_t bytes = (size_t)1 << ((uint8_t)*data >> 6);
	if (length < bytes) return 0;
	*number = (uint8_t)*data & 0x3f;
	for (size_t i = 1; i < bytes; i++) *number = *number << 8 | (uint8_t)data[i];
	return bytes;
}

size_t http3_number_make(uint64_t number, char *out) {
	unsigned log = 0;
	while (log < 3 && number >> ((8 << log) - 2)) log++;
	const size_t bytes = (size_t)1 << log;
	for (size_t i = 0; i < bytes; i++) out[i] = (char)(number >> 8 * (bytes - 1 - i));
	*out = (char)((uint8_t)*out | log << 6);
	return bytes;
}

/* The head of a frame: its type, and the length of the rest. Returns its own length, or 0 if it is incomplete. */
static size_t parse_head(const char *data, size_t length, uint64_t *type, uint64_t *rest) {
	const size_t first = http3_number(data, length, type);
	const size_t second = first ? http3_number(data + first, length - first, rest) : 0;
	return second ? first + second : 0;
}

static bool comes_whole(uint64_t type) {
	return type == HTTP3_HEADERS || type == HTTP3_CANCEL_PUSH || type == HTTP3_SETTINGS || type == HTTP3_PUSH_PROMISE ||
		   type == HTTP3_GOAWAY || type == HTTP3_MAX_PUSH_ID;
}

/* Returns whether it is a type of HTTP/2 that HTTP/3 has reserved (section 7.2.8). */
static bool is_reserved(uint64_t type) { return type == 0x2 || type == 0x6 || type == 0x8 || type == 0x9; }

static void keep(struct http3_frames *f, const char *data, size_t length) {
	f->kept = realloc(f->kept, f->kept_length + length);
	if (!f->kept) abort();
	memcpy(f->kept + f->kept_length, data, length);
	f->kept_length += (uint32_t)length;
}

static size_t wrong(struct http3_event *e, enum http3_code error, size_t used) {
	e->kind = HTTP3_WRONG;
	e->error = error;
	return used;
}

/* Takes bytes of a frame that comes in parts. */
static size_t take_part(struct http3_frames *f, const char *data, size_t length, struct http3_event *e) {
	const size_t n = f->left < length ? (size_t)f->left : length;
	f->left -= n;
	if (f->content) e->kind = HTTP3_CONTENT;
	e->at = data;
	e->length = n;
	return n;
}

/* Adds bytes to those that are kept, as many as are missing in the head or, behind it, in the frame. Returns how many.
 */
static size_t complete(struct http3_frames *f, const char *data, size_t length) {
	uint64_t type, rest;
	const size_t head = parse_head(f->kept, f->kept_length, &type, &rest);
	const size_t missing = head ? head + (size_t)rest - f->kept_length : 1, n = missing < length ? missing : length;
	keep(f, data, n);
	return n;
}

size_t http3_frames_take(struct http3_frames *f, const char *data, size_t length, struct http3_event *e) {
	uint64_t type, rest;
	*e = (struct http3_event){.kind = HTTP3_NOTHING};
	if (!length) return 0;
	if (f->left) return take_part(f, data, length, e);
	size_t used = 0;
	if (f->kept_length) {
		used = complete(f, data, length);
		data = f->kept;
		length = f->kept_length;
	}
	const size_t head = parse_head(data, length, &type, &rest);
	if (head && is_reserved(type)) return wrong(e, HTTP3_FRAME_UNEXPECTED, used);
	if (head && !comes_whole(type)) {
		f->left = rest;
		f->content = type == HTTP3_DATA;
		f->kept_length = 0;
		return used ? used : head;
	}
	if (head && rest > HTTP3_FRAME_MAX) return wrong(e, HTTP3_EXCESSIVE_LOAD, used);
	if (!head || length < head + rest) {
		if (used) return used;
		keep(f, data, length);
		return length;
	}
	*e = (struct http3_event){
		.kind = HTTP3_WHOLE, .type = (enum http3_frame_type)type, .at = data + head, .length = (size_t)rest};
	f->kept_length = 0;
	return used ? used : head + (size_t)rest;
}

void http3_frames_free(struct http3_frames *f) {
	free(f->kept);
	*f = (struct http3_frames){0};
}

const char *http3_code_name(uint64_t code) {
	static const char *const http3[] = {"H3_NO_ERROR",
										"H3_GENERAL_PROTOCOL_ERROR",
										"H3_INTERNAL_ERROR",
										"H3_STREAM_CREATION_ERROR",
										"H3_CLOSED_CRITICAL_STREAM",
										"H3_FRAME_UNEXPECTED",
										"H3_FRAME_ERROR",
										"H3_EXCESSIVE_LOAD",
										"H3_ID_ERROR",
										"H3_SETTINGS_ERROR",
										"H3_MISSING_SETTINGS",
										"H3_REQUEST_REJECTED",
										"H3_REQUEST_CANCELLED",
										"H3_REQUEST_INCOMPLETE",
										"H3_MESSAGE_ERROR",
										"H3_CONNECT_ERROR",
										"H3_VERSION_FALLBACK"},
							 *const qpack[] = {"QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR",
											   "QPACK_DECODER_STREAM_ERROR"};
	if (code >= HTTP3_NO_ERROR && code < HTTP3_NO_ERROR + sizeof http3 / sizeof *http3)
		return http3[code - HTTP3_NO_ERROR];
	if (code >= HTTP3_DECOMPRESSION_FAILED && code < HTTP3_DECOMPRESSION_FAILED + sizeof qpack / sizeof *qpack)
		return qpack[code - HTTP3_DECOMPRESSION_FAILED];
	return NULL;
}
