/* stream.h - the inside of a session, for the files of http2/. http2.c and http2_request.c handle frames that come,
 * stream_send.c chooses what to send next, stream_answer.c answers requests, stream_pass.c passes them on, and stream.c
 * has what they share. */
#ifndef GATLING_HTTP2_STREAM_H
#define GATLING_HTTP2_STREAM_H

#include "gatling/base/peer.h"
#include "gatling/exchange/kept_request.h"
#include "gatling/exchange/response_batch.h"
#include "gatling/http/hpack.h"
#include "gatling/http2/frame.h"
#include "gatling/http2/http2_context.h"
#include "gatling/http2/request_block.h"
#include "gatling/site/answer/answer.h"
#include "gatling/upstream/passage.h"

enum { HTTP2_RESETS_REMEMBERED = 1024 };
enum { HTTP2_WINDOW_MAX = 0x7fffffff, HTTP2_WINDOW_DEFAULT = 65535 }; /* section 6.9 */

/* An open stream: its request is incomplete, or its response has not been sent completely. */
struct stream {
	uint32_t id;
	int64_t send_window, receive_window;
	struct priority priority;
	bool receiving;               /* content of the request is still to come, and the response waits for it */
	bool discards;                /* the rest of the request is dropped, and the response does not wait for it */
	bool ended;                   /* nothing more is sent */
	bool postponed;               /* its file has to be read from the disk: other streams come first */
	bool has_length;              /* the request has a Content-Length */
	uint64_t expected, received;  /* bytes of content: the Content-Length, and those that have come */
	struct kept_request *waiting; /* the request, if it waits for a job or for one of HTTP2_FILES; otherwise NULL */
	struct http2 *http2;
	struct stream_pass *pass;     /* the request, if it is passed on; otherwise NULL */
	struct response_batch *batch; /* the response: a header block, then content; NULL if there is nothing to send */
	size_t block_length;          /* bytes of the header block at the front of batch; 0: it has been written */
	char *early;                  /* content that came while the request waits, if it may be passed on; or NULL */
	size_t early_length;          /* bytes of early */
	size_t early_trailers;        /* bytes of the trailer fields at its end */
	struct peer client;           /* the client of the request */
	bool counted;                 /* limits_take_request() has counted the request */
	bool holds_file;              /* the response counts as one of HTTP2_FILES */
	size_t memory;                /* bytes that it takes, as counted in the session's sum */
	struct stream *next, *previous;
};

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
	bool room_changed; /* stream_pass_make_room() has to be called */
	bool unflushed;    /* content to be passed on has come: stream_pass_flush() has to be called */
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
	struct passage_share share;           /* of the requests that are passed on */
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
	const struct request *request;
	struct peer client; /* see stream_client() */
	struct priority priority;
	bool receiving, discards; /* as in struct stream */
	bool counted;             /* as in struct stream; cleared when a stream takes it over */
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

/* Updates s->memory and the session's sum. */
void stream_account(struct http2 *h, struct stream *s);

/* Removes the waiting request from the stream, and returns it for the caller to free; or NULL. */
struct kept_request *stream_take_waiting(struct stream *s);

/* Returns the client of a request. request: NULL if it was malformed. */
struct peer stream_client(const struct http2 *h, const struct request *request);

/* Counts and logs a response that has no batch. request: NULL if it was malformed. */
void stream_note_answer(struct http2 *h, const struct request *request, struct slice user, int status, uint64_t bytes);

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

/* Returns the description of the connection that answer() needs. client: that of the request. */
struct connection_info stream_connection_info(const struct http2 *h, const struct peer *client);

/* Writes the response at once if that is possible; otherwise opens a stream for it. Takes the response over. Returns
 * false if memory runs out. */
bool stream_answer(struct http2 *h, struct stream_request *asked, struct response *response, struct http2_output *out);

/* Opens a stream whose request waits for the job, or (NULL) for one of HTTP2_FILES, and is answered then. Returns false
 * if memory runs out. */
bool stream_wait(struct http2 *h, struct stream_request *asked, struct job *job);

/* Makes the stream wait with a request, which it takes over; NULL is allowed. */
void stream_wait_for(struct http2 *h, struct stream *s, struct kept_request *waiting);

/* Answers a request that has waited, or passes it on; it may have to wait again. Returns false if memory runs out; then
 * the stream has been freed. */
bool stream_answer_again(struct http2 *h, struct stream *s);

/* Opens a stream whose request is passed on to the upstream in the response. Returns false if memory runs out. */
bool stream_pass_on(struct http2 *h, struct stream_request *asked, const struct response *response);

/* Writes the interim response 100 (Continue). */
void stream_continue(struct http2 *h, uint32_t id, struct http2_output *out);

/* Answers a request that has too many fields with 431. */
void stream_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out);

/* The maximum size of the header block of a response, in bytes. */
enum { STREAM_BLOCK_MAX = HPACK_STATUS + RESPONSE_COMMON_BLOCK + HPACK_BOUND(RESPONSE_FIELDS_MAX) };

/* Writes a header block as a HEADERS frame, followed by CONTINUATION frames if it is long. end: nothing else follows.
 * There must be room for stream_block_frames() bytes. */
void stream_output_block(struct http2 *h, struct http2_output *out, uint32_t id, struct slice block, bool end);
size_t stream_block_frames(size_t length);

/* --- stream_pass.c: streams whose requests are passed on ---
 *
 * Content moves, both ways, between the frames of the stream and a passage (upstream/passage.h). stream->batch has the
 * part of the response that is to be sent next: a header block (block_length), or a piece of content. It is NULL if
 * there is nothing to send. These values describe what follows it. */
enum stream_pass_next {
	STREAM_PASS_WAITS,  /* the stream waits for the upstream */
	STREAM_PASS_DONE,   /* the response is complete */
	STREAM_PASS_FAILED, /* without a response: stream_pass_end() returns the request */
	STREAM_PASS_BROKEN  /* the stream can only be reset */
};

enum stream_pass_next stream_pass_next(const struct stream *s);

/* Begins to pass the request on. Takes over stream->waiting if the request has waited for a job, and its content that
 * has come. response: as answer() has filled it in. Returns false if memory runs out. */
bool stream_pass_begin(struct http2 *h, struct stream *s, const struct request *request,
					   const struct response *response);

/* Ends the pass. Logs the response; without one, returns the request, which has to be answered or freed. */
struct kept_request *stream_pass_end(struct http2 *h, struct stream *s);

/* Returns how many bytes of memory the pass takes. */
size_t stream_pass_memory(const struct stream *s);

/* Passes on content of the request. trailers: NULL if more follows; otherwise its trailer lines, which may be none.
 * Returns false if the client must not send this content. */
bool stream_pass_put(struct http2 *h, struct stream *s, struct slice content, const struct slice *trailers);

/* Sends the content that has been put since the last call. Many small frames are sent together, since each would take a
 * system call. */
void stream_pass_flush(struct http2 *h);

/* Refills stream->batch after all of it has been framed. */
void stream_pass_taken(struct http2 *h, struct stream *s);

/* Returns whether the stream waits for the client to take the response, or to send content. */
bool stream_pass_waits_for_client(const struct http2 *h, const struct stream *s);

/* Raises the windows of the streams and the connection, with frames in out, as far as there is room for content. Lets
 * passages that had used up the share read again. */
void stream_pass_make_room(struct http2 *h, struct http2_output *out);

#endif
