/* http2.h - an HTTP/2 session (RFC 9113). It handles and writes frames in memory, and does no I/O.
 *
 * A response from memory that fits is written at once: two frame headers, a header block that the cache keeps, and the
 * content. Any other response becomes a stream. Streams take turns by their priorities (RFC 9218), and content is read
 * when it is the stream's turn. */
#ifndef GATLING_HTTP2_HTTP2_H
#define GATLING_HTTP2_HTTP2_H

#include "gatling/http2/frame.h"
#include "gatling/http2/http2_context.h"

struct http2;

/* --- http2.c --- */

/* Returns whether data begins with the first line of the HTTP/2 preface (section 3.4), as no HTTP/1.1 request can. */
bool http2_begins(const char *data, size_t length);

/* Returns a new session, which waits for the client's preface, or NULL if memory runs out. functions are called with
 * `connection`. context and functions must outlive the session. */
struct http2 *http2_new(const struct http2_context *context, const struct streams_connection *functions,
						void *connection, const struct peer *peer, enum forwarding forwarding, unsigned port,
						bool secure);
void http2_free(struct http2 *http2); /* NULL is allowed */

/* Handles the frames in data, and writes the frames that answer them to out, which has room for HTTP2_FRAMES bytes.
 * Returns the number of bytes used; the rest is part of a frame. */
size_t http2_receive(struct http2 *http2, const char *data, size_t length, struct http2_output *out);

/* A session ends in two steps, so that no request under way is lost (section 6.8). http2_announce_end() sends a GOAWAY
 * that still allows streams. When the client has acknowledged a PING sent with it, or after HTTP2_DRAIN_MS,
 * http2_drain() sends the GOAWAY that names the last stream. http2_drain() may be called without the announcement. */
enum { HTTP2_DRAIN_MS = 1000 };
void http2_announce_end(struct http2 *http2, struct http2_output *out);
void http2_drain(struct http2 *http2, struct http2_output *out);

/* Ends the session with ENHANCE_YOUR_CALM, since it takes too much memory. */
void http2_calm(struct http2 *http2, struct http2_output *out);

/* Drops incomplete requests: the client has closed its side, and sends no more. */
void http2_input_ended(struct http2 *http2);

bool http2_ended(const struct http2 *http2); /* the connection is to be closed when everything has been sent */

struct streams *http2_streams(struct http2 *http2);

/* Returns what the session waits for, with nothing to send: WAIT_DRAIN when the end has been announced, WAIT_HEAD in a
 * header block or a HEADERS frame, otherwise what streams_wait() says. */
struct waiting http2_waits(const struct http2 *http2);

/* --- http2_output.c --- */

/* Returns how many bytes of memory the session takes. */
size_t http2_memory(const struct http2 *http2);

/* --- http2_send.c --- */

/* Finds the stream that sends next, and its piece. block: STREAMS_BLOCK bytes, for a header block that had to wait.
 * out: the buffer for frames, with room for HTTP2_BATCH bytes at first; some frames may be written to it. Returns false
 * if no stream can send, or there is no room left. */
bool http2_next(struct http2 *http2, char *block, struct http2_piece *piece, struct http2_output *out);

/* Writes the frame for a piece from http2_next(). length: how many bytes of it were taken, or -1 if its file has
 * failed; then the stream is reset. */
void http2_write(struct http2 *http2, const struct http2_piece *piece, ssize_t length, struct http2_output *out);

#endif
