/* session.h - the inside of a session, for the files of http2/. http2.c and http2_request.c handle frames that come,
 * http2_send.c writes those of responses, and http2_output.c has what they share. What does not
 * depend on frames is in streams/. */
#ifndef GATLING_HTTP2_SESSION_H
#define GATLING_HTTP2_SESSION_H

#include <nghttp2/nghttp2.h>

#include "gatling/http2/frame.h"
#include "gatling/http2/http2_context.h"
#include "gatling/streams/request_fields.h"

enum { HTTP2_RESETS_REMEMBERED = 1024 };
enum { HTTP2_WINDOW_MAX = 0x7fffffff, HTTP2_WINDOW_DEFAULT = 65535 }; /* section 6.9 */

enum http2_flood {
	HTTP2_FLOOD_RESETS,
	HTTP2_FLOOD_PINGS,
	HTTP2_FLOOD_SETTINGS,
	HTTP2_FLOOD_EMPTY,
	HTTP2_FLOOD_UPDATES,
	HTTP2_FLOOD_OTHERS,
	HTTP2_FLOODS
};

struct http2 {
	struct streams streams; /* the first member, see http2_of() */
	const struct http2_context *context;
	bool greeted;      /* the server's SETTINGS have been sent */
	bool settled;      /* the client's first SETTINGS have come */
	bool leaving;      /* the client sends no more requests: the connection ends when no stream is open */
	bool announced;    /* the first GOAWAY has been sent, which still allows streams */
	bool draining;     /* the GOAWAY that names the last stream has been sent */
	bool shrink_table; /* the next block has to set the size of the dynamic table to 0 (RFC 7541, section 4.2) */
	struct dynamic_lines dynamic; /* what that table has; off from then on */
	uint8_t preface;              /* bytes of the client's preface that have come */
	nghttp2_hd_inflater *inflater;
	int64_t send_window, receive_window;
	int64_t initial_window; /* the client's initial window for each stream */
	uint32_t last_stream;   /* the highest ID of a stream that is answered */
	uint32_t highest;       /* the highest ID that the client has used */
	int64_t head_since_ns;  /* since when only part of a HEADERS frame has come; 0: that is not so */
	/* A bit for each of the client's latest streams: the server has ended it, so frames of the client may still
	 * come. */
	uint64_t was_reset[HTTP2_RESETS_REMEMBERED / 64];
	struct unopened_priorities *unopened; /* or NULL */
	/* a header block that comes in several frames */
	unsigned char *block;
	size_t block_length;
	uint32_t block_stream; /* 0: no block has begun */
	int64_t block_since_ns;
	uint8_t block_flags;
	unsigned continuations;
	/* counts of the current second */
	int64_t second;
	uint64_t count[HTTP2_FLOODS], sent; /* frames of each kind; bytes of DATA sent */
};

static inline struct http2 *http2_of(const struct streams *streams) { return (struct http2 *)(uintptr_t)streams; }

static inline bool http2_is_unopened(const struct http2 *h, uint32_t id) { return id > h->highest || id % 2 == 0; }

/* --- http2_output.c --- */

extern const struct streams_protocol http2_protocol;

/* Append a frame to out; the payload of the second kind is a number. If there is no room for it, the session fails. */
void http2_output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags,
						uint32_t stream, const void *payload, size_t length);
void http2_output_number(struct http2 *h, struct http2_output *out, enum frame_type type, uint32_t stream,
						 uint32_t number);

/* Writes the table size update with which the next block has to begin, if any. Returns the number of bytes written. */
size_t http2_put_table_size(struct http2 *h, char *at);

/* Writes a header block as a HEADERS frame, followed by CONTINUATION frames if it is long. end: nothing else follows.
 * There must be room for http2_block_frames() bytes. */
void http2_output_block(struct http2 *h, struct http2_output *out, uint32_t id, struct slice block, bool end);
size_t http2_block_frames(size_t length);

/* Raises a receive window (id 0: the connection's) to `most` bytes with a WINDOW_UPDATE, if it is much smaller. */
void http2_open_window(struct http2 *h, uint32_t id, int64_t *window, int64_t most, struct http2_output *out);

/* Raises the windows of the streams and the connection, as far as there is room for content. Lets proxied requests that
 * had used up the share read again. */
void http2_make_room(struct http2 *h, struct http2_output *out);

/* Counts a frame. Returns HTTP2_ENHANCE_YOUR_CALM if there were too many of its kind in this second. */
enum http2_error http2_count_frame(struct http2 *h, enum http2_flood kind);

/* Resets a stream, whether it is open or not. Returns HTTP2_NO_ERROR, or the error that ends the session. */
enum http2_error http2_reset(struct http2 *h, uint32_t id, enum http2_error error, struct http2_output *out);

/* Sets h->highest. */
void http2_note_highest(struct http2 *h, uint32_t id);

/* Notes that the server has ended the stream, so that frames that still come on it are dropped. */
void http2_note_reset(struct http2 *h, uint32_t id);

/* Returns whether frames of a stream that is not open are dropped (RFC 9113, section 5.1): the server has ended it, it
 * is too old to be remembered, or it came after the GOAWAY. */
bool http2_was_reset(struct http2 *h, uint32_t id);

/* Ends a stream whose response has been written completely. */
void http2_end_stream(struct http2 *h, struct stream *s, struct http2_output *out);

/* --- http2_request.c --- */

/* Decodes a block to its end, even if it is malformed, so that the next one can be decoded. *request refers to text
 * (REQUEST_TEXT bytes). trailers: the block has the trailer fields of a request. See request_fields.h. Returns
 *    0: it is a request;
 *  > 0: the status to answer; after 431, the block was not decoded to its end, and the connection cannot go on, since
 *       one octet of a block can stand for 4 KB;
 *  < 0: REQUEST_MALFORMED, which ends the stream, or the negative error that ends the connection. */
int http2_request_decode(nghttp2_hd_inflater *inflater, const unsigned char *block, size_t length, bool trailers,
						 bool passes, char *text, struct request *request, struct priority *priority);

/* These return HTTP2_NO_ERROR, or the error that ends the session. */

enum http2_error http2_take_headers(struct http2 *h, const struct frame *f, struct http2_output *out);
enum http2_error http2_take_continuation(struct http2 *h, const struct frame *f, struct http2_output *out);
enum http2_error http2_take_data(struct http2 *h, const struct frame *f, struct http2_output *out);

/* --- http2_send.c --- */

/* Writes the response at once if that is possible; otherwise opens a stream for it. Takes the response over. Returns
 * false if memory runs out. */
bool http2_answer(struct http2 *h, struct stream_request *asked, struct response *response, struct http2_output *out);

/* Writes the interim response 100 (Continue). */
void http2_continue(struct http2 *h, uint32_t id, struct http2_output *out);

/* Answers a request that has too many fields with 431. */
void http2_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out);

#endif
