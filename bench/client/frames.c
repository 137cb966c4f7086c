/* frames.c - see frames.h. */
#include "bench/client/frames.h"

#include <string.h>

enum {
	LAST = 0x80,     /* in the first byte: this frame ends the message */
	RESERVED = 0x70, /* these bits are 0 without an extension */
	OPCODE = 0x0f,
	CONTROL = 0x08,
	MASKED = 0x80, /* in the second byte */
	LENGTH = 0x7f,
	LENGTH_16 = 126, /* the length is in the next 2 bytes, */
	LENGTH_64 = 127, /* or in the next 8 */
	MASK_SIZE = 4
};

/* A mask must be one that scripts in a browser cannot foresee, so that they cannot choose the bytes that a proxy sees
 * (RFC 6455, section 10.3). Here the content is chosen by whoever starts the program. With one mask for all messages,
 * each message is masked once, and not each time it is sent. The server's work is the same. */
static const char mask[MASK_SIZE] = {0x37, (char)0xfa, 0x21, 0x3d};

/* --- frames from a server --- */

static bool is_control(const struct frames *f) { return f->head[0] & CONTROL; }

/* Returns what is wrong with the first two bytes of a head, or NULL. */
static const char *check_start(const struct frames *f) {
	const uint8_t length = f->head[1] & LENGTH;
	if (f->head[0] & RESERVED) return "a frame has reserved bits set";
	if (f->head[1] & MASKED) return "a frame is masked, which a server's is not";
	switch (f->head[0] & OPCODE) {
	case FRAMES_CONTINUATION: return f->in_message ? NULL : "a frame continues no message";
	case FRAMES_TEXT:
	case FRAMES_BINARY: return f->in_message ? "a message begins within another" : NULL;
	case FRAMES_CLOSE:
		if (length == 1) return "a Close has half a status";
		break;
	case FRAMES_PING:
	case FRAMES_PONG: break;
	default: return "a frame has an unknown opcode";
	}
	if (length > FRAMES_CONTROL_MAX) return "a control frame has more than 125 bytes";
	return f->head[0] & LAST ? NULL : "a control frame is fragmented";
}

static unsigned head_size(const struct frames *f) {
	if (f->head_length < 2) return 2;
	switch (f->head[1] & LENGTH) {
	case LENGTH_16: return 2 + 2;
	case LENGTH_64: return 2 + 8;
	default: return 2;
	}
}

/* Prepares for the content. Returns what is wrong with the head, or NULL. */
static const char *begin_content(struct frames *f) {
	const unsigned size = f->head_length;
	uint64_t length = size == 2 ? f->head[1] & LENGTH : 0;
	for (unsigned i = 2; i < size; i++) length = length << 8 | f->head[i];
	if (size > 2 && length < (size == 4 ? LENGTH_16 : UINT16_MAX + 1)) return "a length takes more bytes than it needs";
	f->in_frame = true;
	f->left = length;
	f->control_kept = 0;
	if (is_control(f)) return NULL;
	if (!f->in_message) f->length = 0;
	if (length > FRAMES_MESSAGE_MAX - f->length) return "a message has more than 256 MiB";
	f->length += length;
	f->in_message = true;
	return NULL;
}

/* Reads a head, or a part of one. Returns how many bytes it used; why: what is wrong, if anything. */
static size_t take_head(struct frames *f, const char *data, size_t length, const char **why) {
	size_t at = 0;
	while (f->head_length < head_size(f)) {
		if (at == length) return at;
		f->head[f->head_length++] = (uint8_t)data[at++];
		if (f->head_length == 2 && (*why = check_start(f))) return at;
	}
	*why = begin_content(f);
	return at;
}

static void end_frame(struct frames *f) {
	f->in_frame = false;
	f->head_length = 0;
}

size_t frames_take(struct frames *f, const char *data, size_t length, struct frames_event *e) {
	const char *why = NULL;
	const size_t head = f->in_frame ? 0 : take_head(f, data, length, &why);
	*e = (struct frames_event){.kind = why ? FRAMES_WRONG : FRAMES_NOTHING, .why = why};
	if (!f->in_frame || why) return head;
	const size_t n = length - head < f->left ? length - head : (size_t)f->left;
	f->left -= n;
	if (is_control(f)) {
		memcpy(f->control + f->control_kept, data + head, n);
		f->control_kept += (uint8_t)n;
		if (f->left) return head + n;
		e->kind = FRAMES_CONTROL;
		e->opcode = f->head[0] & OPCODE;
		e->at = f->control;
		e->length = f->control_kept;
	} else {
		e->kind = FRAMES_CONTENT;
		e->at = data + head;
		e->length = n;
		e->ends = !f->left && f->head[0] & LAST;
		if (e->ends) f->in_message = false;
	}
	if (!f->left) end_frame(f);
	return head + n;
}

/* --- frames of a client --- */

static size_t length_bytes(size_t length) { return length < LENGTH_16 ? 0 : length <= UINT16_MAX ? 2 : 8; }

size_t frames_size(size_t length) { return 2 + length_bytes(length) + MASK_SIZE + length; }

void frames_make(char *to, enum frames_opcode opcode, const char *content, size_t length) {
	const size_t more = length_bytes(length);
	*to++ = (char)(LAST | opcode);
	*to++ = (char)(MASKED | (more == 0 ? length : more == 2 ? LENGTH_16 : LENGTH_64));
	for (size_t i = more; i-- > 0;) *to++ = (char)((uint64_t)length >> (8 * i));
	memcpy(to, mask, MASK_SIZE);
	to += MASK_SIZE;
	for (size_t i = 0; i < length; i++) to[i] = (char)(content[i] ^ mask[i % MASK_SIZE]);
}
