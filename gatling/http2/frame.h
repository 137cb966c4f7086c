/* frame.h - HTTP/2 frames (RFC 9113, sections 4 and 6): their constants, and how to read and write them. */
#ifndef GATLING_HTTP2_FRAME_H
#define GATLING_HTTP2_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gatling/base/slice.h"

enum { FRAME_HEADER = 9, FRAME_PAYLOAD_MAX = 16384 }; /* bytes; the payload that every peer must accept (section 4.2) */
enum { FRAME_TYPE_AT = 3 };                           /* where the type is in a frame */
enum { FRAME_PRIORITY_LENGTH = 5 };                   /* bytes of the priority fields of RFC 7540 (section 6.3) */

enum frame_type {
	FRAME_DATA = 0,
	FRAME_HEADERS = 1,
	FRAME_PRIORITY = 2,
	FRAME_RST_STREAM = 3,
	FRAME_SETTINGS = 4,
	FRAME_PUSH_PROMISE = 5,
	FRAME_PING = 6,
	FRAME_GOAWAY = 7,
	FRAME_WINDOW_UPDATE = 8,
	FRAME_CONTINUATION = 9,
	FRAME_PRIORITY_UPDATE = 16 /* RFC 9218, section 7.1 */
};

enum {
	FRAME_FLAG_ACK = 1,
	FRAME_FLAG_END_STREAM = 1,
	FRAME_FLAG_END_HEADERS = 4,
	FRAME_FLAG_PADDED = 8,
	FRAME_FLAG_PRIORITY = 32
};

enum setting {
	HTTP2_SETTING_HEADER_TABLE_SIZE = 1,
	HTTP2_SETTING_ENABLE_PUSH = 2,
	HTTP2_SETTING_MAX_CONCURRENT_STREAMS = 3,
	HTTP2_SETTING_INITIAL_WINDOW_SIZE = 4,
	HTTP2_SETTING_MAX_FRAME_SIZE = 5,
	HTTP2_SETTING_MAX_HEADER_LIST_SIZE = 6,
	HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL = 8, /* RFC 8441, section 3 */
	HTTP2_SETTING_NO_RFC7540_PRIORITIES = 9    /* RFC 9218, section 2.1 */
};

/* Error codes (section 7). */
enum http2_error {
	HTTP2_NO_ERROR = 0,
	HTTP2_PROTOCOL_ERROR = 1,
	HTTP2_INTERNAL_ERROR = 2,
	HTTP2_FLOW_CONTROL_ERROR = 3,
	HTTP2_STREAM_CLOSED = 5,
	HTTP2_FRAME_SIZE_ERROR = 6,
	HTTP2_REFUSED_STREAM = 7,
	HTTP2_CANCEL = 8,
	HTTP2_COMPRESSION_ERROR = 9,
	HTTP2_ENHANCE_YOUR_CALM = 11
};

struct frame {
	uint8_t type, flags;
	uint32_t stream;
	const unsigned char *payload;
	uint32_t length; /* bytes of the payload */
};

/* The buffer that frames are written to. */
struct http2_output {
	char *at, *end;
	bool blocked; /* earlier frames wait to be sent, so responses become streams */
};

static inline size_t http2_output_room(const struct http2_output *out) { return (size_t)(out->end - out->at); }

static inline uint32_t frame_get_32(const unsigned char *p) {
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline char *frame_put_16(char *at, uint32_t n) {
	at[0] = (char)(n >> 8);
	at[1] = (char)n;
	return at + 2;
}

static inline char *frame_put_32(char *at, uint32_t n) { return frame_put_16(frame_put_16(at, n >> 16), n); }

/* Reads the frame at the start of data. Returns its length with its header, or 0 if it is incomplete or too long;
 * f->length is over FRAME_PAYLOAD_MAX if it is too long. */
static inline size_t frame_read(struct frame *f, const char *data, size_t length) {
	const unsigned char *p = (const unsigned char *)data;
	f->length = 0;
	if (length < FRAME_HEADER) return 0;
	*f = (struct frame){.length = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2],
						.type = p[FRAME_TYPE_AT],
						.flags = p[4],
						.stream = frame_get_32(p + 5) & 0x7fffffff,
						.payload = p + FRAME_HEADER};
	return f->length <= FRAME_PAYLOAD_MAX && length - FRAME_HEADER >= f->length ? FRAME_HEADER + f->length : 0;
}

/* Writes the header of a frame. Returns where its payload goes. */
static inline char *frame_header(char *at, size_t length, enum frame_type type, unsigned flags, uint32_t stream) {
	at = frame_put_16(at, (uint32_t)(length >> 8));
	*at++ = (char)length;
	*at++ = (char)type;
	*at++ = (char)flags;
	return frame_put_32(at, stream);
}

#endif
