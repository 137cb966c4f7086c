/* frames.h - the frames of a WebSocket (RFC 6455, section 5): parses those of a server, makes those of a client. */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FRAMES_CONTROL_MAX = 125,              /* bytes of the content of a control frame */
	FRAMES_MESSAGE_MAX = 256 * 1024 * 1024 /* and of a message, with all its frames; a longer one is refused */
};

enum frames_opcode {
	FRAMES_CONTINUATION = 0,
	FRAMES_TEXT = 1,
	FRAMES_BINARY = 2,
	FRAMES_CLOSE = 8,
	FRAMES_PING = 9,
	FRAMES_PONG = 10
};

/* All zero: before the first frame. */
struct frames {
	uint64_t left;        /* bytes to come of the frame's content */
	uint64_t length;      /* of the message, with this frame */
	uint8_t head[10];     /* of the frame, */
	uint8_t head_length;  /* of which so much is there */
	bool in_frame;        /* its head is complete */
	bool in_message;      /* a frame of it has begun, and its last one has not ended */
	uint8_t control_kept; /* bytes of a control frame's content */
	char control[FRAMES_CONTROL_MAX];
};

/* What has come. */
struct frames_event {
	enum {
		FRAMES_NOTHING, /* a part of a head or of a control frame */
		FRAMES_CONTENT, /* of a message: length bytes, which may be 0 */
		FRAMES_CONTROL, /* a whole control frame: opcode, and its content, which is there until the next call */
		FRAMES_WRONG    /* what the protocol does not allow: why; the state is of no use any more */
	} kind;
	enum frames_opcode opcode;
	const char *at;
	size_t length;
	bool ends; /* the message ends with this content */
	const char *why;
};

/* Consumes bytes, at least one, up to the end of one event. Returns how many. Text is not checked for UTF-8. */
size_t frames_take(struct frames *frames, const char *data, size_t length, struct frames_event *event);

/* Writes a whole, masked frame to a buffer of frames_size() bytes. */
void frames_make(char *to, enum frames_opcode opcode, const char *content, size_t length);
size_t frames_size(size_t length);

#endif
