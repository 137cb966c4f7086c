/* frames.h - WebSocket frames (RFC 6455, section 5): parses those from a server, and makes those of a client. */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FRAMES_CONTROL_MAX = 125,              /* bytes of content of a control frame */
	FRAMES_MESSAGE_MAX = 256 * 1024 * 1024 /* bytes of a message, all frames together; a longer one is refused */
};

enum frames_opcode {
	FRAMES_CONTINUATION = 0,
	FRAMES_TEXT = 1,
	FRAMES_BINARY = 2,
	FRAMES_CLOSE = 8,
	FRAMES_PING = 9,
	FRAMES_PONG = 10
};

/* The state of the parser. All zero before the first frame. */
struct frames {
	uint64_t left;        /* bytes of the frame's content that are still to come */
	uint64_t length;      /* bytes of the message up to the end of this frame */
	uint8_t head[10];     /* the head of the frame, */
	uint8_t head_length;  /* as far as it has come */
	bool in_frame;        /* the head is complete */
	bool in_message;      /* the first frame has begun, and the last one has not ended */
	uint8_t control_kept; /* bytes of a control frame's content that have come */
	char control[FRAMES_CONTROL_MAX];
};

/* What has come. */
struct frames_event {
	enum {
		FRAMES_NOTHING, /* only a part of a head or of a control frame */
		FRAMES_CONTENT, /* content of a message: length bytes, which may be 0 */
		FRAMES_CONTROL, /* a whole control frame: its opcode, and its content, which is valid until the next call */
		FRAMES_WRONG    /* a violation of the protocol, described by why; the state must not be used any more */
	} kind;
	enum frames_opcode opcode;
	const char *at;
	size_t length;
	bool ends; /* the message ends with this content */
	const char *why;
};

/* Uses at least one byte of data, up to the end of an event. Returns how many. Does not check whether text is UTF-8. */
size_t frames_take(struct frames *frames, const char *data, size_t length, struct frames_event *event);

/* Writes a whole, masked frame to a buffer of frames_size() bytes. */
void frames_make(char *to, enum frames_opcode opcode, const char *content, size_t length);
size_t frames_size(size_t length);

#endif
