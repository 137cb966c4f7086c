/* stream.h - the inside of a session, for the files of http2/. http2.c and http2_request.c handle frames that come,
 * stream_send.c chooses what to send next, stream_answer.c answers requests, stream_relay.c moves content of those that
 * are passed on, and stream.c has what they share. */
#ifndef GATLING_HTTP2_STREAM_H
#define GATLING_HTTP2_STREAM_H

#include "gatling/base/peer.h"
#include "gatling/exchange/exchange.h"
#include "gatling/http/hpack.h"
#include "gatling/http2/frame.h"
#include "gatling/http2/http2_context.h"
#include "gatling/http2/request_block.h"

enum { HTTP2_RESETS_REMEMBERED = 1024 };
enum { HTTP2_WINDOW_MAX = 0x7fffffff, HTTP2_WINDOW_DEFAULT = 65535 }; /* section 6.9 */

/* An open stream: its request is incomplete, or its response has not been sent completely. */
struct stream {
	uint32_t id;
	int64_t send_window, receive_window;
	struct priority priority;
	bool receiving;              /* content of the request is still to come, and the response waits for it */
	bool discards;               /* the rest of the request is dropped, and the response does not wait for it */
	bool ended;                  /* nothing more is sent */
	bool postponed;              /* its file has to be read from the disk: other streams come first */
	bool has_length;             /* the request has a Content-Length */
	uint64_t expected, received; /* bytes of content: the Content-Length, and those that have come */
	struct http2 *http2;
	/* The request, if it waits for a job or for one of HTTP2_FILES, or is passed on; otherwise NULL. */
	struct exchange *exchange;
	enum exchange_relayed relayed; /* it is passed on: what follows the batch */
	unsigned stalls;               /* proxied_stalls() when the proxied request was last ready */
	struct response_batch *batch;  /* the response: a header block, then content; NULL if there is nothing to send */
	size_t block_length;           /* bytes of the header block at the front of batch; 0: it has been written */
	char *early;                   /* content that came while the request waits, if it may be passed on; or NULL */
	size_t early_length;           /* bytes of early */
	size_t early_trailers;         /* bytes of the trailer fields at its end */
	struct peer client;            /* the client of the request */
	bool counted;                  /* limits_take_request() has counted the request */
	bool holds_file;               /* the response counts as one of HTTP2_FILES */
	struct {
		size_t memory, waiting; /* bytes that it takes, and those of a request that waits */
		bool passed, tunnel;    /* the request is passed on, and is a WebSocket */
	} account;                  /* its part of the session's sums */
	struct stream *next, *previous;
};

/* Return whether the request waits here, for a job or for one of HTTP2_FILES; for a job; or is passed on. */
static inline bool stream_waits(const struct stream *s) { return s->exchange && !s->exchange->proxied; }
static inline bool stream_waits_for_job(const struct stream *s) {
	return s->exchange && exchange_waits_for_job(s->exchange);
}
static inline bool stream_is_passed_on(const struct stream *s) { return s->exchange && s->exchange->proxied; }

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
	const struct http2_context *context;
	const struct http2_connection *functions;
	void *connection;
	struct peer peer; /* the other end of the connection; see also stream_client() */
	enum forwarding forwarding;
	uint16_t port;
	bool secure;
	bool greeted;      /* the server's SETTINGS have been sent */
	bool settled;      /* the client's first SETTINGS have come */
	bool leaving;      /* the client sends no more requests: the connection ends when no stream is open */
	bool announced;    /* the first GOAWAY has been sent, which still allows streams */
	bool draining;     /* the GOAWAY that names the last stream has been sent */
	bool failed;       /* the session ends at once, and no stream goes on */
	bool shrink_table; /* the next block has to set the size of the dynamic table to 0 (RFC 7541, section 4.2) */
	bool postpones;    /* some streams are postponed */
	bool room_changed; /* stream_relay_make_room() has to be called */
	bool unflushed;    /* content to be passed on has come: stream_relay_flush() has to be called */
	bool progress;
	uint8_t preface; /* bytes of the client's preface that have come */
	nghttp2_hd_inflater *inflater;
	int64_t send_window, receive_window;
	int64_t initial_window; /* the client's initial window for each stream */
	uint32_t last_stream;   /* the highest ID of a stream that is answered */
	uint32_t highest;       /* the highest ID that the client has used */
	/* A bit for each of the client's latest streams: the server has ended it, so frames of the client may still
	 * come. */
	uint64_t was_reset[HTTP2_RESETS_REMEMBERED / 64];
	unsigned open, files;                 /* numbers of open streams, and of those that hold a file */
	unsigned passes, tunnels;             /* numbers of requests that are passed on, and of WebSockets */
	struct proxied_share share;           /* of the requests that are passed on */
	size_t waiting_size;                  /* bytes of the requests that wait */
	size_t memory;                        /* bytes that the streams take */
	struct unopened_priorities *unopened; /* or NULL */
	struct stream *first, *last;          /* the most urgent first */
	/* a header block that comes in several frames */
	unsigned char *block;
	size_t block_length;
	uint32_t block_stream; /* 0: no block has begun */
	uint8_t block_flags;
	unsigned continuations;
	/* counts of the current second */
	int64_t second;
	uint64_t count[HTTP2_FLOODS], sent; /* frames of each kind; bytes of DATA sent */
};

/* The priorities of streams that the client has not opened yet (RFC 9218, section 7.1). */
struct unopened_priorities {
	unsigned count;
	struct {
		uint32_t id;
		struct priority priority;
	} stream[HTTP2_STREAMS_MAX];
};

/* Return the word and the bit of a stream in http2.was_reset. */
static inline uint64_t *stream_reset_word(struct http2 *h, uint32_t id) {
	return &h->was_reset[id / 2 % HTTP2_RESETS_REMEMBERED / 64];
}
static inline uint64_t stream_reset_bit(uint32_t id) { return UINT64_C(1) << id / 2 % 64; }

static inline bool http2_is_unopened(const struct http2 *h, uint32_t id) { return id > h->highest || id % 2 == 0; }

/* --- stream.c --- */

struct stream *stream_find(const struct http2 *h, uint32_t id);
/* A request, with values for the stream that it may need. */
struct stream_request {
	uint32_t id;
	struct exchange exchange; /* its `counted` is cleared when a stream takes that over */
	struct peer client;       /* see stream_client() */
	struct priority priority;
	bool receiving, discards; /* as in struct stream */
};

/* Opens a stream for a request. Returns NULL if memory runs out. */
struct stream *stream_open(struct http2 *h, struct stream_request *asked);

void stream_set_priority(struct http2 *h, struct stream *s, struct priority priority);

/* Logs the response, or 499 for a request that has none yet, and frees the stream. */
void stream_close(struct http2 *h, struct stream *s);

/* Ends a stream whose response has been written completely. */
void stream_end(struct http2 *h, struct stream *s, struct http2_output *out);

/* Keeps content, and then trailer fields, that come while the request waits. Returns false if memory runs out. */
bool stream_keep_early(struct http2 *h, struct stream *s, struct slice content);

/* Drops the content that stream_keep_early() has kept. */
void stream_drop_early(struct http2 *h, struct stream *s);

/* Updates s->account and the session's sums. To be called when the stream, its batch or its exchange has changed. */
void stream_account(struct http2 *h, struct stream *s);

/* Gives the batch back, if there is one. */
void stream_drop_batch(struct http2 *h, struct stream *s);

/* Returns the client of a request. request: NULL if it was malformed. */
struct peer stream_client(const struct http2 *h, const struct request *request);

/* Append a frame to out; the payload of the second kind is a number. If there is no room for it, the session fails. */
void http2_output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags,
						uint32_t stream, const void *payload, size_t length);
void http2_output_number(struct http2 *h, struct http2_output *out, enum frame_type type, uint32_t stream,
						 uint32_t number);

/* Raises a receive window (id 0: the connection's) to `most` bytes with a WINDOW_UPDATE, if it is much smaller. */
void stream_open_window(struct http2 *h, uint32_t id, int64_t *window, int64_t most, struct http2_output *out);

/* Counts a frame. Returns HTTP2_ENHANCE_YOUR_CALM if there were too many of its kind in this second. */
enum http2_error http2_count_frame(struct http2 *h, enum http2_flood kind);

/* Resets a stream, whether it is open or not. Returns HTTP2_NO_ERROR, or the error that ends the session. */
enum http2_error http2_reset(struct http2 *h, uint32_t id, enum http2_error error, struct http2_output *out);

/* Notes that the server has ended the stream, so that frames that still come on it are dropped. */
void stream_note_reset(struct http2 *h, uint32_t id);

/* Returns whether frames of a stream that is not open are dropped (RFC 9113, section 5.1): the server has ended it, it
 * is too old to be remembered, or it came after the GOAWAY. */
bool http2_was_reset(struct http2 *h, uint32_t id);

/* --- http2_request.c: these return HTTP2_NO_ERROR, or the error that ends the session --- */

enum http2_error http2_take_headers(struct http2 *h, const struct frame *f, struct http2_output *out);
enum http2_error http2_take_continuation(struct http2 *h, const struct frame *f, struct http2_output *out);
enum http2_error http2_take_data(struct http2 *h, const struct frame *f, struct http2_output *out);

/* --- stream_answer.c --- */

/* Begins the exchange of a request. client: see stream_client(). request: NULL if it was malformed. */
void stream_begin_exchange(struct http2 *h, struct exchange *exchange, const struct request *request,
						   const struct peer *client);

/* Writes the response at once if that is possible; otherwise opens a stream for it. Takes the response over. Returns
 * false if memory runs out. */
bool stream_answer(struct http2 *h, struct stream_request *asked, struct response *response, struct http2_output *out);

/* Opens a stream whose request waits for the job in the response, or is passed on. With a status it waits for one of
 * HTTP2_FILES, and is answered then. Returns false if memory runs out. */
bool stream_keep(struct http2 *h, struct stream_request *asked, const struct response *response);

/* Answers a request that has waited, or could not be passed on; it may have to wait again. Returns false if memory runs
 * out; then the stream has been freed. */
bool stream_answer_again(struct http2 *h, struct stream *s);

/* Writes the interim response 100 (Continue). */
void stream_continue(struct http2 *h, uint32_t id, struct http2_output *out);

/* Answers a request that has too many fields with 431. */
void stream_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out);

/* Writes a header block as a HEADERS frame, followed by CONTINUATION frames if it is long. end: nothing else follows.
 * There must be room for stream_block_frames() bytes. */
void stream_output_block(struct http2 *h, struct http2_output *out, uint32_t id, struct slice block, bool end);
size_t stream_block_frames(size_t length);

/* --- stream_relay.c: streams whose requests are passed on ---
 *
 * stream->batch has the part of the response that is to be sent next: a header block (block_length), or a piece of
 * content. It is NULL if there is nothing to send. */

extern const struct carrier stream_carrier;

/* Begins to move content, with that which has come before. */
void stream_relay_begin(struct http2 *h, struct stream *s);

/* Called when the proxied request has made progress, or has stalled. */
void stream_relay_ready(struct http2 *h, struct stream *s);

/* Passes on content of the request. trailers: NULL if more follows; otherwise its trailer lines, which may be none.
 * Returns false if the client must not send this content. */
bool stream_relay_put(struct http2 *h, struct stream *s, struct slice content, const struct slice *trailers);

/* Sends the content that has been put since the last call. Many small frames are sent together, since each would take a
 * system call. */
void stream_relay_flush(struct http2 *h);

/* Refills stream->batch after all of it has been framed. */
void stream_relay_taken(struct http2 *h, struct stream *s);

/* Returns whether the stream waits for the client to take the response, or to send content. */
bool stream_relay_waits_for_client(const struct http2 *h, const struct stream *s);

/* Raises the windows of the streams and the connection, with frames in out, as far as there is room for content. Lets
 * proxied requests that had used up the share read again. */
void stream_relay_make_room(struct http2 *h, struct http2_output *out);

#endif
