/* http3_frames.h - the frames of an HTTP/3 stream, as their bytes come (RFC 9114, section 7). */
#ifndef BENCH_HTTP3_FRAMES_H
#define BENCH_HTTP3_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those that have a meaning; all others but the ones that HTTP/3 reserves are skipped (section 9). */
enum http3_frame_type {
	HTTP3_DATA = 0x0,
	HTTP3_HEADERS = 0x1,
	HTTP3_CANCEL_PUSH = 0x3,
	HTTP3_SETTINGS = 0x4,
	HTTP3_PUSH_PROMISE = 0x5,
	HTTP3_GOAWAY = 0x7,
	HTTP3_MAX_PUSH_ID = 0xd
};

/* Section 8.1, and RFC 9204, section 6. */
enum http3_code {
	HTTP3_NO_ERROR = 0x100,
	HTTP3_CLOSED_CRITICAL_STREAM = 0x104,
	HTTP3_FRAME_UNEXPECTED = 0x105,
	HTTP3_FRAME_ERROR = 0x106,
	HTTP3_EXCESSIVE_LOAD = 0x107,
	HTTP3_ID_ERROR = 0x108,
	HTTP3_MISSING_SETTINGS = 0x10a,
	HTTP3_REQUEST_REJECTED = 0x10b,
	HTTP3_REQUEST_CANCELLED = 0x10c,
	HTTP3_MESSAGE_ERROR = 0x10e,
	HTTP3_DECOMPRESSION_FAILED = 0x200
};

enum {
	HTTP3_FRAME_MAX = 64 * 1024, /* bytes of a frame that is kept until it is whole */
	HTTP3_NUMBER = 8             /* bytes of a number, at most (RFC 9000, section 16) */
};

/* The state of a stream. All zero at first. */
struct http3_frames {
	uint64_t left; /* bytes of a frame that come in parts */
	bool content;  /* they are of DATA; else they are skipped */
	uint32_t kept_length;
	char *kept; /* of a frame that is not whole yet */
};

struct http3_event {
	enum {
		HTTP3_NOTHING, /* yet */
		HTTP3_CONTENT, /* the next bytes of DATA, */
		HTTP3_WHOLE,   /* or a frame of another type, without its head: at and length, until the next call */
		HTTP3_WRONG    /* error says why the connection cannot go on */
	} kind;
	enum http3_frame_type type;
	const char *at;
	size_t length;
	enum http3_code error;
};

/* Takes bytes up to the next event. Returns how many. Ends the program without memory. */
size_t http3_frames_take(struct http3_frames *frames, const char *data, size_t length, struct http3_event *event);

/* Returns whether a stream may end here: between two frames. */
static inline bool http3_frames_between(const struct http3_frames *f) { return !f->left && !f->kept_length; }

void http3_frames_free(struct http3_frames *frames);

/* Parses a number at the start of data (RFC 9000, section 16). Returns its length, or 0 if it is incomplete. */
size_t http3_number(const char *data, size_t length, uint64_t *number);

/* Writes one to out (HTTP3_NUMBER bytes). Returns its length. */
size_t http3_number_make(uint64_t number, char *out);

/* Returns the name of an error code; NULL: it has none. */
const char *http3_code_name(uint64_t code);

#endif
