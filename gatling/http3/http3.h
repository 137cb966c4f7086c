/* http3.h - an HTTP/3 session (RFC 9114): the frames on the streams of a QUIC connection. It works in memory and does
 * no I/O: the transport (quic/) gives it what has come on streams, and asks it what to send next.
 *
 * What is to be sent on a stream is copied to chunks of memory, since QUIC may have to send it again, and freed when
 * the client has acknowledged it. */
#ifndef GATLING_HTTP3_HTTP3_H
#define GATLING_HTTP3_HTTP3_H

#include "gatling/http3/http3_context.h"

struct http3;

/* Returns a new session, or NULL if memory runs out. The context and the transport must outlive it. */
struct http3 *http3_new(const struct http3_context *context, const struct http3_transport *transport, void *connection,
						const struct peer *peer, enum forwarding forwarding, unsigned port);
void http3_free(struct http3 *http3); /* NULL is allowed */

struct streams *http3_streams(struct http3 *http3);

/* Returns what it waits for: as streams_wait(), and then that the client takes the responses that have been sent. */
struct waiting http3_wait(const struct http3 *http3);

/* Begins to send: SETTINGS on the server's control stream, which has that id. Returns it, or NULL without memory. */
struct http3_stream *http3_begin(struct http3 *http3, int64_t id);

/* A stream that the client opens. Returns NULL without memory. */
struct http3_stream *http3_open(struct http3 *http3, int64_t id);

/* Handles what has come on a stream. ends: the client sends no more on it. Returns HTTP3_OK, or the error that ends the
 * connection. */
enum http3_error http3_receive(struct http3 *http3, struct http3_stream *stream, struct slice data, bool ends);

/* Ends a request: the client has reset its side of the stream. */
enum http3_error http3_cancelled(struct http3 *http3, struct http3_stream *stream);

/* Called when all that was received together has been handled. Returns as http3_receive(). */
enum http3_error http3_received(struct http3 *http3);

/* Frees a stream, of which the transport knows no more. The client may send as much again as has come on it. Returns as
 * http3_receive(). */
enum http3_error http3_close(struct http3 *http3, struct http3_stream *stream);

/* --- sending --- */

/* Lets the client send as much as has been passed on. To be called before anything is sent: an upstream may have taken
 * content meanwhile. */
void http3_make_room(struct http3 *http3);

/* Finds what to send next. Returns false if there is nothing. */
bool http3_next(struct http3 *http3, struct http3_piece *piece);

/* Notes that the transport has taken the first n bytes of the piece, and, if these are all, its end. */
void http3_sent(struct http3 *http3, const struct http3_piece *piece, size_t n);

/* Drops what was to be sent on a stream: the transport takes no more. */
void http3_give_up(struct http3 *http3, struct http3_stream *stream);

/* Notes that the client has acknowledged the next n bytes of the stream. */
void http3_acknowledged(struct http3 *http3, struct http3_stream *stream, uint64_t n);

/* Says whether the window of the stream is closed, so that http3_next() skips it. */
void http3_block(struct http3_stream *stream, bool blocked);

/* --- the end --- */

/* Returns whether part of a head has come on a stream that was opened before that time. */
bool http3_receives_head(const struct http3 *http3, int64_t before_ms);

/* Resets the streams that were opened before a time, on the clock of io_now(), and on which the head of a request has
 * not come. Returns whether there were any. */
bool http3_end_late(struct http3 *http3, int64_t since_ms);

/* Asks the client to send no more requests, in a first GOAWAY; those that come are answered (RFC 9114, section 5.2). */
void http3_announce_end(struct http3 *http3);

/* Sends a last GOAWAY: requests that come after those that have come are not answered. Returns false if that was done
 * before. */
bool http3_drain(struct http3 *http3);

/* Returns whether that has been sent, the streams of all requests have ended, and all has been acknowledged. */
bool http3_ended(const struct http3 *http3);

/* Returns the bytes of memory that it takes; and those of them that count as kept for the client (conn/budget.h): all
 * but what is sent again if it is lost. */
size_t http3_memory(const struct http3 *http3);
size_t http3_kept(const struct http3 *http3);

/* Returns how many bytes the client has acknowledged and sent on all streams. */
uint64_t http3_transferred(const struct http3 *http3);

#endif
