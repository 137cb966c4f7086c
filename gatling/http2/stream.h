/* stream.h - the inside of a session, for the files of http2/: http2.c and http2_request.c handle frames that come;
 * stream_send.c chooses what is sent next; stream_answer.c answers, and stream_pass.c passes requests on; stream.c is
 * what they share. */
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

/* A stream whose response has not been sent completely, or whose request is incomplete. */
struct stream {
	uint32_t id;
	int64_t send_window, receive_window;
	struct priority priority;
	bool receiving;               /* content of the request is still to come: the response waits for it */
	bool discards;                /* what still comes of the request is dropped: the response does not wait for it */
	bool ended;                   /* nothing more is sent */
	bool postponed;               /* its file is read from the disk, or will be: others come first */
	bool has_length;              /* the request has a Content-Length: */
	uint64_t expected, received;  /* bytes of its content */
	struct kept_request *waiting; /* its request, if it waits for a job or for one of HTTP2_FILES; otherwise NULL */
	struct http2 *http2;
	struct stream_pass *pass;     /* its request, if that is passed on; otherwise NULL */
	struct response_batch *batch; /* a header block, then content; NULL while the request waits */
	size_t block_length;          /* bytes of the block at its front; 0: the block has been written */
	char *early;                  /* content that has come while it waits, if it may be passed on; or NULL */
	size_t early_length;          /* bytes, */
	size_t early_trailers;        /* the last of which are trailer fields */
	struct peer client;           /* whose request it is */
	bool counted;                 /* it is one of the requests that limits_return_requests() gives back */
	bool holds_file;              /* the response is one of HTTP2_FILES */
	size_t memory;                /* bytes that it takes, as the session has them in its sum */
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
	struct peer peer; /* the other end; the client of a request: stream_client() */
	enum forwarding forwarding;
	uint16_t port;
	bool secure;
	bool greeted;      /* our SETTINGS have been sent */
	bool settled;      /* the client's first SETTINGS have come */
	bool leaving;      /* the client sends no further requests: the connection ends when no stream is open */
	bool announced;    /* the first GOAWAY has been sent, which still allows streams */
	bool draining;     /* the GOAWAY that names the last stream has been sent */
	bool failed;       /* the session ends at once: no stream goes on */
	bool shrink_table; /* the next block has to say that the dynamic table is not used (RFC 7541, section 4.2) */
	bool postpones;    /* streams */
	bool room_changed; /* for what is passed on: see stream_pass_make_room() */
	bool unflushed;    /* content to be passed on has come: see stream_pass_flush() */
	bool progress;
	uint8_t preface; /* bytes of the client's preface that have come */
	nghttp2_hd_inflater *inflater;
	int64_t send_window, receive_window;
	int64_t initial_window; /* of the streams, for us to send */
	uint32_t last_stream;   /* the highest that is answered */
	uint32_t highest;       /* the highest that the client has opened */
	/* A bit for each of the client's last streams: the server ended it first, so frames may still come on it. */
	uint64_t was_reset[HTTP2_RESETS_REMEMBERED / 64];
	unsigned open, files;                 /* streams; of them with an open file, */
	unsigned passes, tunnels;             /* with a request that is passed on, and WebSockets */
	struct passage_share share;           /* of those */
	size_t waiting_size;                  /* bytes of the requests of those that wait */
	size_t memory;                        /* of all of them */
	struct unopened_priorities *unopened; /* priorities of streams to come; NULL: none */
	struct stream *first, *last;          /* the most urgent first */
	/* a header block in several frames */
	unsigned char *block;
	size_t block_length;
	uint32_t block_stream; /* 0: none */
	uint8_t block_flags;
	unsigned continuations;
	/* frames of the current second */
	int64_t second;
	uint64_t count[HTTP2_FLOODS], sent; /* and bytes of DATA */
};

/* The priority of a stream that the client has not opened yet (RFC 9218, section 7.1). */
struct unopened_priorities {
	unsigned count;
	struct {
		uint32_t id;
		struct priority priority;
	} stream[HTTP2_STREAMS_MAX];
};

/* Where the bit of a stream is in http2.was_reset. */
static inline uint64_t *stream_reset_word(struct http2 *h, uint32_t id) {
	return &h->was_reset[id / 2 % HTTP2_RESETS_REMEMBERED / 64];
}
static inline uint64_t stream_reset_bit(uint32_t id) { return UINT64_C(1) << id / 2 % 64; }

static inline bool http2_is_unopened(const struct http2 *h, uint32_t id) { return id > h->highest || id % 2 == 0; }

/* --- stream.c --- */

struct stream *stream_find(const struct http2 *h, uint32_t id);
/* A request with what its stream will need. */
struct stream_request {
	uint32_t id;
	const struct request *request;
	struct peer client; /* stream_client() */
	struct priority priority;
	bool receiving, discards; /* as of a stream */
	bool counted;             /* likewise; a stream takes it over */
};

/* Opens a stream for a request. NULL: ENOMEM. */
struct stream *stream_open(struct http2 *h, struct stream_request *asked);

void stream_set_priority(struct http2 *h, struct stream *s, struct priority priority);

/* Writes the line of the access log (with 499 for a request that still waits) and frees the stream. */
void stream_close(struct http2 *h, struct stream *s);

/* Ends a stream whose response has been written completely. */
void stream_end(struct http2 *h, struct stream *s, struct http2_output *out);

/* Keeps content, and then trailer fields, that come while the request waits. Returns false without memory. */
bool stream_keep_early(struct http2 *h, struct stream *s, struct slice content);

/* Drops what was kept. */
void stream_drop_early(struct http2 *h, struct stream *s);

/* Updates the account of the memory that the stream takes. */
void stream_account(struct http2 *h, struct stream *s);

/* Takes from the stream the request that waits, for the caller to free. NULL: none does. */
struct kept_request *stream_take_waiting(struct stream *s);

/* Returns whose request it is (NULL: it was malformed). */
struct peer stream_client(const struct http2 *h, const struct request *request);

/* Counts an answer that has no stream, and logs its request (NULL: it was malformed). */
void stream_note_answer(struct http2 *h, const struct request *request, struct slice user, int status, uint64_t bytes);

/* Appends a frame. If there is no room for it, the session fails. */
void http2_output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags,
						uint32_t stream, const void *payload, size_t length);
void http2_output_number(struct http2 *h, struct http2_output *out, enum frame_type type, uint32_t stream,
						 uint32_t number);

/* Opens a window of ours (stream 0: that of the connection) up to `most`, if it is much smaller. */
void stream_open_window(struct http2 *h, uint32_t id, int64_t *window, int64_t most, struct http2_output *out);

/* Counts a frame. Returns HTTP2_ENHANCE_YOUR_CALM if there were too many of the kind in this second. */
enum http2_error http2_count_frame(struct http2 *h, enum http2_flood kind);

/* Resets a stream, whether it is open or not. Returns the error with which the session ends, as http2_count_frame(). */
enum http2_error http2_reset(struct http2 *h, uint32_t id, enum http2_error error, struct http2_output *out);

/* Notes that the server has ended the stream: frames that still come on it are dropped. */
void stream_note_reset(struct http2 *h, uint32_t id);

/* Returns whether the server has ended the stream, or it is too old to be remembered: its frames are dropped (RFC 9113,
 * section 5.1). */
bool http2_was_reset(struct http2 *h, uint32_t id);

/* --- http2_request.c: these return HTTP2_NO_ERROR, or the error with which the session ends --- */

enum http2_error http2_take_headers(struct http2 *h, const struct frame *f, struct http2_output *out);
enum http2_error http2_take_continuation(struct http2 *h, const struct frame *f, struct http2_output *out);
enum http2_error http2_take_data(struct http2 *h, const struct frame *f, struct http2_output *out);

/* --- stream_answer.c --- */

/* Returns how the request of that client comes. */
struct connection_info stream_connection_info(const struct http2 *h, const struct peer *client);

/* Writes the response at once if that is possible; otherwise opens a stream for it. Returns false without memory. */
bool stream_answer(struct http2 *h, struct stream_request *asked, struct response *response, struct http2_output *out);

/* Opens a stream that waits for the job, or (NULL) for one of HTTP2_FILES, and is answered then. Returns false without
 * memory. */
bool stream_wait(struct http2 *h, struct stream_request *asked, struct job *job);

/* Has the stream wait, too, but not begin; NULL is allowed. */
void stream_wait_for(struct http2 *h, struct stream *s, struct kept_request *waiting);

/* Asks anew for the answer to a request that has waited. Returns false without memory, and the stream has been freed.
 */
bool stream_answer_again(struct http2 *h, struct stream *s);

/* Opens a stream whose request is passed on, as the response says. Returns false without memory. */
bool stream_pass_on(struct http2 *h, struct stream_request *asked, const struct response *response);

/* Writes the interim response 100. */
void stream_continue(struct http2 *h, uint32_t id, struct http2_output *out);

/* Answers a request that has too many fields with 431. */
void stream_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out);

/* The most bytes of a header block of a response. */
enum { STREAM_BLOCK_MAX = HPACK_STATUS + RESPONSE_COMMON_BLOCK + HPACK_BOUND(RESPONSE_FIELDS_MAX) };

/* Writes a block as a frame, and more if it is long. There has to be room: stream_block_frames() bytes at most. */
void stream_output_block(struct http2 *h, struct http2_output *out, uint32_t id, struct slice block, bool end);
size_t stream_block_frames(size_t length);

/* --- stream_pass.c: streams whose requests are passed on ---
 *
 * Content goes both ways between the frames of the stream and a passage (upstream/passage.h). What is sent of the
 * response is in stream->batch, which is NULL when there is nothing to send: a header block (block_length), or a
 * piece of content. What follows behind it: */
enum stream_pass_next {
	STREAM_PASS_WAITS,  /* for the upstream */
	STREAM_PASS_DONE,   /* the response is complete */
	STREAM_PASS_FAILED, /* nothing has been answered: stream_pass_end() returns the request */
	STREAM_PASS_BROKEN  /* the stream can only be reset */
};

enum stream_pass_next stream_pass_next(const struct stream *s);

/* Begins. Takes stream->waiting over if the request has waited for a job, and what has come of its content. response:
 * that of answer(). Returns false without memory. */
bool stream_pass_begin(struct http2 *h, struct stream *s, const struct request *request,
					   const struct response *response);

/* Ends it. Logs what has been answered; if nothing has been, returns the request, which is to be answered, or freed. */
struct kept_request *stream_pass_end(struct http2 *h, struct stream *s);

/* Returns the bytes of memory that it takes. */
size_t stream_pass_memory(const struct stream *s);

/* Passes on content of the request; trailers: it is complete with these lines, which may be none; NULL: more comes.
 * false: it must not come. */
bool stream_pass_put(struct http2 *h, struct stream *s, struct slice content, const struct slice *trailers);

/* Sends what has been put since the last call: that of many small frames together, as each would take a system call. */
void stream_pass_flush(struct http2 *h);

/* Goes on when all of stream->batch has been framed. */
void stream_pass_taken(struct http2 *h, struct stream *s);

/* Returns whether the client has to go on: it has not taken the response, or has not sent its content. */
bool stream_pass_waits_for_client(const struct http2 *h, const struct stream *s);

/* Opens the windows of the streams and the connection as far as there is room for content, with frames in out. Has
 * passages read on whose share was used up. */
void stream_pass_make_room(struct http2 *h, struct http2_output *out);

#endif
