/* http2.h - a connection of HTTP/2 (RFC 9113): frames in, frames out. It moves no bytes itself.
 *
 * An answer from memory that fits goes out as two frame headers, a block that the cache keeps and the file's bytes, and
 * is forgotten. Any other becomes a stream: those take turns by their priorities (RFC 9218), and what they send is read
 * when it is their turn. */
#ifndef GATLING_HTTP2_HTTP2_H
#define GATLING_HTTP2_HTTP2_H

#include "gatling/http2/context.h"
#include "gatling/http2/frame.h"

struct http2;

/* Whether the bytes that begin a connection are of HTTP/2 (section 3.4): no request has that line. */
bool http2_begins(const char *data, size_t length);

/* A session on a connection, which is handed to its functions; its socket is the adopted fd. The client's preface is
 * still to come. The context and the functions outlive the session. NULL: ENOMEM. */
struct http2 *http2_new(const struct http2_context *context, const struct http2_connection *functions, void *connection,
						int fd, const struct peer *peer, unsigned port, bool secure);
void http2_free(struct http2 *http2); /* NULL is allowed */

/* Takes the frames in data; the bytes used: what is left is part of a frame. Frames that answer go to out, which has
 * room for HTTP2_FRAMES bytes. blocked: others wait to be sent, so nothing but what has to be is written. */
size_t http2_receive(struct http2 *http2, const char *data, size_t length, bool blocked, struct http2_output *out);

/* Writes what streams have to send, about HTTP2_BATCH bytes at most. Nothing, also when http2_sendable(): the file is
 * being read (io_reading()). */
void http2_produce(struct http2 *http2, struct http2_output *out);

/* Whether a stream has something to send that the client has room for. */
bool http2_sendable(const struct http2 *http2);

/* The end in two steps (section 6.8), so that no request is lost that is on its way: says that it comes; and, when the
 * client has heard that (it has acknowledged a PING) or after HTTP2_DRAIN_MS, that no further streams are taken. The
 * second may come without the first. */
enum { HTTP2_DRAIN_MS = 1000 };
void http2_announce_end(struct http2 *http2, struct http2_output *out);
void http2_drain(struct http2 *http2, struct http2_output *out);
bool http2_end_announced(const struct http2 *http2); /* and not more */

/* Ends the connection of a client that takes too much (ENHANCE_YOUR_CALM). */
void http2_calm(struct http2 *http2, struct http2_output *out);

/* The client sends nothing more: requests of which not all has come never will. */
void http2_input_ended(struct http2 *http2);

/* Whether requests wait for something that the server does. */
bool http2_waits(const struct http2 *http2);

/* Bytes of memory that are kept for it, see budget.h. */
size_t http2_memory(const struct http2 *http2);

/* Whether a header block has begun and not ended. */
bool http2_in_block(const struct http2 *http2);

bool http2_idle(const struct http2 *http2);  /* no stream is open */
bool http2_ended(const struct http2 *http2); /* the connection is to be closed when everything has been sent */

/* Whether a request has come, or part of an answer has been written, since the last call. */
bool http2_progress(struct http2 *http2);

#endif
