/* outgoing.h - the bytes that a passage has for its upstream: the head of a request, then content in the frames of the
 * protocol. Frames none of which has been sent take further content, so that many small pieces take hardly more room
 * than one large. Owns a buffer while there is something in it. */
#ifndef GATLING_UPSTREAM_OUTGOING_H
#define GATLING_UPSTREAM_OUTGOING_H

#include "gatling/base/slice.h"

/* How content is framed. */
enum framing {
	FRAMED_NOT,
	FRAMED_CHUNKS, /* RFC 9112, section 7.1 */
	FRAMED_RECORDS /* FastCGI */
};

enum {
	OUTGOING_PIECE_MAX = 65535, /* bytes of content that are taken at a time */
	OUTGOING_OVERHEAD = 32      /* bytes that the frames of all content take at most */
};

/* All zero: empty. */
struct outgoing {
	char *bytes;
	size_t at, length, size; /* from `at` on: to be sent */
	size_t head_unsent;      /* bytes of the head among these */
	enum framing framing;
	bool joins;   /* content that comes next joins the last frame */
	size_t frame; /* where that begins */
};

/* Returns the bytes that have not been sent. */
static inline struct slice outgoing_rest(const struct outgoing *out) {
	return (struct slice){.at = out->bytes + out->at, .length = out->length - out->at};
}

/* Returns how many of them are content. */
static inline size_t outgoing_content(const struct outgoing *out) { return out->length - out->at - out->head_unsent; }

/* Add the head, content (OUTGOING_PIECE_MAX bytes), and its end, with trailer fields if there are chunks; framed: as
 * the protocol says. Returns false without memory. */
bool outgoing_begin(struct outgoing *out, struct slice head);
bool outgoing_put(struct outgoing *out, struct slice content, bool framed);
bool outgoing_end(struct outgoing *out, struct slice trailers);

/* Notes that bytes have been sent. They stay until outgoing_forget(). */
void outgoing_sent(struct outgoing *out, size_t length);

/* Has all be sent again that has not been forgotten. */
void outgoing_rewind(struct outgoing *out);

/* Frees the buffer. */
void outgoing_forget(struct outgoing *out);

#endif
