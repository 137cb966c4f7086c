/* outgoing.h - the bytes that a proxied request has to send to its upstream: the head of a request, then content in the
 * frames of the protocol. As long as no byte of the last frame has been sent, further content joins it, so that many
 * small pieces take hardly more room than a large one. The buffer is allocated while there is something in it. */
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
	OUTGOING_PIECE_MAX = 65535, /* bytes of content that can be added at a time */
	OUTGOING_OVERHEAD = 32      /* the most bytes that all frames add to the content */
};

/* All zero: empty. */
struct outgoing {
	char *bytes;
	size_t at, length, size; /* bytes from `at` to `length` are to be sent */
	size_t head_unsent;      /* how many of these belong to the head */
	enum framing framing;
	bool joins;   /* the next content joins the last frame */
	size_t frame; /* offset of the last frame */
};

/* Return the bytes that have not been sent, and how many they are. */
struct slice outgoing_rest(const struct outgoing *out);
size_t outgoing_unsent(const struct outgoing *out);

/* Returns how many of them are content and its frames. */
size_t outgoing_content(const struct outgoing *out);

/* Add the head, content (at most OUTGOING_PIECE_MAX bytes), and the end of the content, with trailer fields if it is
 * chunked. framed: in the frames of the protocol. Return false if memory runs out. */
bool outgoing_begin(struct outgoing *out, struct slice head);
bool outgoing_put(struct outgoing *out, struct slice content, bool framed);
bool outgoing_end(struct outgoing *out, struct slice trailers);

/* Notes that length bytes have been sent. They are kept until outgoing_forget(). Returns those that are left to be
 * sent. */
struct slice outgoing_sent(struct outgoing *out, size_t length);

/* Starts again with the head. The request must have no content. */
void outgoing_rewind(struct outgoing *out);

/* Frees the buffer. */
void outgoing_forget(struct outgoing *out);

#endif
