/* streams.h - the requests of a connection that carries many at a time: their waits, their answers, their turns, and
 * the content that they exchange with upstreams. HTTP/2 has a session around it, which reads and writes frames
 * (http2/). What differs between such protocols is in a table of functions. */
#ifndef GATLING_STREAMS_STREAMS_H
#define GATLING_STREAMS_STREAMS_H

#include "gatling/base/peer.h"
#include "gatling/exchange/exchange.h"
#include "gatling/exchange/wait.h"
#include "gatling/hpack/hpack.h"
#include "gatling/hpack/qpack.h"
#include "gatling/streams/request_fields.h"

enum {
	STREAMS_MAX = 128, /* open streams of a connection */
	/* Streams whose content is generated while it is sent, and the same with an open file (as CONN_PIPELINE_FILES);
	 * others wait. There may be more with a file as long as the worker can open many (cache_spares_files()), so that
	 * nothing waits for downloads that the client does not read. */
	STREAMS_HELD = 4,
	STREAMS_WAITING =
		128 * 1024, /* bytes of requests that wait for a job; when there are more, the next ones are answered without */
	/* Bytes of content of requests, and of responses (proxied.h), that all streams together may hold between the client
	 * and upstreams. At the first limit the window of the connection is closed; at the second no more is read from
	 * upstreams. */
	STREAMS_PASSED_CONTENT = 128 * 1024,
	STREAMS_PASSED_RESPONSES = 640 * 1024 /* of 40 that the client does not take (PROXIED_SMALL) */
};

/* What a response holds until it has been sent. */
enum streams_hold { HOLDS_NOTHING, HOLDS_FILE, HOLDS_SOURCE, STREAMS_HOLDS };

/* An open stream: its request is incomplete, or its response has not been sent completely. */
struct stream {
	uint64_t id;
	struct priority priority;
	bool receiving;              /* content of the request is still to come, and the response waits for it */
	bool discards;               /* the rest of the request is dropped, and the response does not wait for it */
	bool ended;                  /* nothing more is sent */
	bool postponed;              /* its file has to be read from the disk: other streams come first */
	bool has_length;             /* the request has a Content-Length */
	uint64_t expected, received; /* bytes of content: the Content-Length, and those that have come */
	struct streams *streams;
	/* The request, if it waits for a job or to hold something, or is passed on; otherwise NULL. */
	struct exchange *exchange;
	enum exchange_relayed relayed; /* it is passed on: what follows the batch */
	unsigned stalls;               /* proxied_stalls() when the proxied request was last ready */
	struct response_batch *batch;  /* the response: a header block, then content; NULL if there is nothing to send */
	size_t block_length;           /* bytes of the header block at the front of batch; 0: it has been written */
	char *early;                   /* content that came while the request waits, if it may be passed on; or NULL */
	size_t early_length;           /* bytes of early */
	size_t early_trailers;         /* bytes of the trailer fields at its end */
	struct peer client, peer;      /* the client of the request, and the other end of the connection when it came */
	bool counted;                  /* limits_take_request() has counted the request */
	enum streams_hold holds;       /* the response counts as one that does, */
	enum streams_hold awaits;      /* or waits until it may */
	struct {
		size_t memory, waiting;          /* bytes that it takes, and those of a request that waits */
		bool passed, tunnel;             /* the request is passed on, and is a WebSocket */
	} account;                           /* its part of the connection's sums */
	int64_t send_window, receive_window; /* of HTTP/2: bytes of content that client and server may send */
	void *own;                           /* the session's part of it; or NULL */
	struct stream *next, *previous;
};

/* A request, with values for the stream that it may need. */
struct stream_request {
	uint64_t id;
	struct exchange exchange; /* its `counted` is cleared when a stream takes that over */
	struct peer client;       /* the one that a trusted proxy names, or the peer */
	struct priority priority;
	bool receiving, discards; /* as in struct stream */
	void *own;
};

/* What differs between the protocols. */
struct streams_protocol {
	const struct carrier *carrier; /* one of those below */

	/* Encode :status, and field lines, to out (STREAMS_STATUS and STREAMS_FIELDS() bytes). Return the number of bytes
	 * written. */
	size_t (*status)(int status, char *out);
	size_t (*fields)(struct slice lines, char *out);

	/* Called when a stream is opened, and before it is freed. The second one may be NULL. */
	void (*opened)(struct stream *stream);
	void (*closed)(struct stream *stream);

	/* Returns how many bytes of content of this stream the client takes, whatever others send. */
	size_t (*stream_room)(const struct stream *stream);

	/* Return whether the client takes any content; and lets content of requests come as long as upstreams take it. */
	bool (*takes)(const struct streams *streams);
	bool (*receives)(const struct streams *streams);
};

enum { STREAMS_STATUS = QPACK_STATUS };
_Static_assert((int)QPACK_STATUS >= (int)HPACK_STATUS, "the larger one");
#define STREAMS_FIELDS(text_length) HPACK_BOUND(text_length)

/* The maximum sizes of the header block of a response, in bytes: before its own fields, and whole. */
enum {
	STREAMS_BLOCK_START = STREAMS_STATUS + RESPONSE_COMMON_BLOCK,
	STREAMS_BLOCK = STREAMS_BLOCK_START + STREAMS_FIELDS(RESPONSE_FIELDS_MAX)
};

/* The functions that are called for the connection. */
struct streams_connection {
	void (*send)(void *connection);  /* something can be sent now */
	void (*close)(void *connection); /* it cannot go on, since memory has run out */
};

/* Part of a session, which fills in the first three members; streams_begin() those up to secure. */
struct streams {
	const struct exchange_context *exchanges;
	const struct streams_protocol *protocol;
	/* The fields that all responses have, as a header block of at most RESPONSE_COMMON_BLOCK bytes. */
	const struct slice *common_block;
	const struct streams_connection *functions;
	void *connection;
	struct peer peer; /* the other end of the connection now */
	enum forwarding forwarding;
	uint16_t port;
	bool secure;
	bool failed;       /* the connection ends at once, and no stream goes on */
	bool postpones;    /* some streams are postponed */
	bool room_changed; /* the session has to look at the windows */
	bool unflushed;    /* content to be passed on has come: streams_flush() has to be called */
	bool progress;     /* a request has come, content has been passed on, or part of a response has been sent */
	unsigned open;     /* number of open streams, */
	unsigned held[STREAMS_HOLDS]; /* and of those that hold something */
	unsigned passes, tunnels;     /* numbers of requests that are passed on, and of WebSockets */
	struct proxied_share share;   /* of the requests that are passed on */
	size_t waiting_size;          /* bytes of the requests that wait */
	size_t memory;                /* bytes that the streams take */
	struct stream *first, *last;  /* the most urgent first */
};

/* Return whether the request waits here, for a job or to hold something; for a job; or is passed on. */
static inline bool stream_waits(const struct stream *s) { return s->exchange && !s->exchange->proxied; }
static inline bool stream_waits_for_job(const struct stream *s) {
	return s->exchange && exchange_waits_for_job(s->exchange);
}
static inline bool stream_is_passed_on(const struct stream *s) { return s->exchange && s->exchange->proxied; }

/* --- streams.c --- */

/* Begins to serve a connection. peer: its other end; forwarding: how far that is trusted (forwarding_of()). */
void streams_begin(struct streams *streams, const struct streams_connection *functions, void *connection,
				   const struct peer *peer, enum forwarding forwarding, unsigned port, bool secure);

/* Notes that the other end of the connection has another address. Requests that have come keep theirs. */
void streams_set_peer(struct streams *streams, const struct peer *peer, enum forwarding forwarding);

struct stream *stream_find(const struct streams *streams, uint64_t id);

/* Opens a stream for a request. Returns NULL if memory runs out. */
struct stream *stream_open(struct streams *streams, struct stream_request *asked);

void stream_set_priority(struct stream *stream, struct priority priority);

/* Logs the response, or 499 for a request that has none yet, and frees the stream. */
void stream_close(struct stream *stream);

/* Keeps content, and then trailer fields, that come while the request waits. Returns false if memory runs out. */
bool stream_keep_early(struct stream *stream, struct slice content);

/* Drops the content that stream_keep_early() has kept. */
void stream_drop_early(struct stream *stream);

/* Updates stream->account and the connection's sums. To be called when the stream, its batch or its exchange has
 * changed. */
void stream_account(struct stream *stream);

/* Gives the batch back, if there is one. */
void stream_drop_batch(struct stream *stream);

/* --- answer.c --- */

/* Returns what the response to a request will hold, and whether it may: otherwise it waits until others have been sent.
 */
enum streams_hold streams_hold_of(const struct request *request, const struct response *response);
bool streams_may_hold(const struct streams *streams, enum streams_hold hold);

/* Writes the header block of a response to block (STREAMS_BLOCK bytes). Returns it, or an absent slice if random bytes
 * that it needs are not available. */
struct slice streams_block(const struct streams *streams, struct response *response, char *block,
						   uint64_t *content_length);

/* Gives the stream the response to the exchange, which it takes over, with its header block. sent: the caller sends the
 * block at once, so only the content is left; if there is none, the stream is ended. Returns false if memory runs out;
 * then the stream has been freed. */
bool stream_fill(struct stream *stream, struct exchange *exchange, struct response *response, struct slice block,
				 uint64_t content_length, bool sent);

/* Opens a stream whose request waits for the job in the response, or is passed on. A response with a status is dropped:
 * the request waits until it may hold what that would, and is answered then. Returns false if memory runs out. */
bool streams_keep(struct streams *streams, struct stream_request *asked, struct response *response);

/* Answers a request that has waited, or could not be passed on; it may have to wait again. Returns false if memory runs
 * out; then the stream has been freed. */
bool stream_answer_again(struct stream *stream);

/* Lets the requests that have waited for a job since since_ns, or longer, be answered without it; they may still have
 * to wait for what they hold. Returns whether there are any; then the session has to send. */
bool streams_give_up_waiting(struct streams *streams, int64_t since_ns);

/* --- request.c --- */

/* Begins the exchange of a request. client: who has sent it. request: NULL if it was malformed. */
void streams_begin_exchange(struct streams *streams, struct exchange *exchange, const struct request *request,
							const struct peer *client);

enum streams_taken {
	STREAMS_TAKEN,
	STREAMS_MALFORMED, /* the stream is to be reset, */
	STREAMS_REFUSED,   /* this, too: there is no room */
	STREAMS_TOO_MUCH,  /* this, too: more content than BODY_MAX */
	STREAMS_NO_MEMORY  /* the connection is to be closed */
};

/* Begins the exchange of a request, whose stream is not open yet. status: of request_fields_end(). full: no request may
 * be passed on. A request that is not taken is logged. */
enum streams_taken streams_take_request(struct streams *streams, struct stream_request *asked, struct request *request,
										int status, bool full);

/* Decides how that request is answered: by the status, if it is not 0, or by exchange_begin(). *continues: a 100 has to
 * be sent first. The caller then sends the response, or calls streams_keep(). */
enum exchange_next streams_decide(struct stream_request *asked, int status, struct response *response, bool *continues);

/* Take content of a request that is still received; and its trailer fields, as lines of HTTP/1.1. ends: nothing
 * follows. */
enum streams_taken stream_take_content(struct stream *stream, struct slice content, bool ends);
enum streams_taken stream_take_trailers(struct stream *stream, struct slice lines, bool ends);

/* --- turn.c --- */

/* Answers the requests that waited to hold something, and may. */
void streams_answer_waiting(struct streams *streams);

/* Answers a request that could not be passed on. */
void stream_relay_failed(struct stream *stream);

/* Returns the stream that sends next, or NULL (RFC 9218, section 10): of the most urgent ones, the one that came first.
 * It keeps its turn to the end, unless it is incremental. Without a batch, its proxied request has ended. */
struct stream *streams_next(const struct streams *streams);

/* Returns whether a stream has something to send, and the client takes it. */
bool stream_can_send(const struct stream *stream);

/* Returns whether streams_next() has one, or would have after streams_answer_waiting(). */
bool streams_sendable(const struct streams *streams);

/* Notes that the header block of the stream, or some of its content, has been taken from the batch. Continues a proxied
 * request whose batch is empty. Sets stream->ended after the last bytes of a response. */
void stream_sent(struct stream *stream);

/* stream_postpone() makes streams_next() skip the stream, whose next bytes are not in memory. streams_go_on() ends this
 * for all streams. */
void stream_postpone(struct stream *stream);
void streams_go_on(struct streams *streams);

/* Returns what the connection waits for, with nothing to send: WAIT_JOB if any stream waits for a job, WAIT_UPSTREAM or
 * WAIT_TUNNEL if none waits for the client. */
struct waiting streams_wait(const struct streams *streams);

/* Returns whether there has been progress since the last call. */
bool streams_take_progress(struct streams *streams);

/* Returns whether any stream waits for an upstream. */
bool streams_await_upstream(const struct streams *streams);

/* --- relay.c: streams whose requests are passed on ---
 *
 * stream->batch has the part of the response that is to be sent next: a header block (block_length), or a piece of
 * content. It is NULL if there is nothing to send. */

extern const struct carrier streams_http2, streams_http3;

/* Begins to move content, with that which has come before. */
void stream_relay_begin(struct stream *stream);

/* Called when the proxied request has made progress, or has stalled. */
void stream_relay_ready(struct stream *stream);

/* Passes on content of the request. trailers: NULL if more follows; otherwise its trailer lines, which may be none.
 * Returns false if the client must not send this content. */
bool stream_relay_put(struct stream *stream, struct slice content, const struct slice *trailers);

/* Sends the content that has been put since the last call. Many small frames are sent together, since each would take a
 * system call. */
void streams_flush(struct streams *streams);

/* Refills stream->batch after all of it has been sent. */
void stream_relay_taken(struct stream *stream);

/* Returns whether the stream waits for the client to take the response, or to send content. */
bool stream_relay_waits_for_client(const struct stream *stream);

/* Lets proxied requests that had used up the share read again. */
void streams_feed(struct streams *streams);

/* Returns how many bytes of content of the request are held here. */
size_t stream_held(const struct stream *stream);

#endif
