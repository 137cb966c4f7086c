/* stream.h - what http2.c, which takes frames, and stream.c, which sends answers, share. */
#ifndef GATLING_HTTP2_STREAM_H
#define GATLING_HTTP2_STREAM_H

#include "gatling/base/peer.h"
#include "gatling/http2/context.h"
#include "gatling/http2/frame.h"
#include "gatling/http2/request_block.h"
#include "gatling/site/answer.h"
#include "gatling/site/response_batch.h"

enum { URGENCIES = 8, CUT_REMEMBERED = 1024 };

enum { WINDOW_MAX = 0x7fffffff, WINDOW_DEFAULT = 65535 }; /* section 6.9 */

/* A stream whose answer is not out yet, or whose request is not complete. */
struct stream {
	uint32_t id;
	int64_t send_window, receive_window;
	struct priority priority;
	bool receiving;                 /* content of the request is still to come: the answer waits for it */
	bool cut;                       /* the answer does not wait for it: what comes of it is dropped */
	bool ended;                     /* nothing more is sent */
	bool has_length;                /* the request has said how long its content is: */
	uint64_t expected;              /* so long; */
	uint64_t received;              /* so much has come */
	struct waiting *waiting;        /* for a job, before it can be answered; NULL: it does not wait */
	struct response_batch *x;       /* a header block, then content; NULL while it waits */
	size_t block_length;            /* bytes of the block at the front of it, 0: it is out */
	bool file;                      /* the answer is one of HTTP2_FILES */
	size_t memory;                  /* that it takes, as the connection has it in its sum */
	struct stream *next, *previous; /* of the same urgency */
};

struct streams {
	struct stream *first, *last;
};

enum flood { FLOOD_RESETS, FLOOD_PINGS, FLOOD_SETTINGS, FLOOD_EMPTY, FLOOD_UPDATES, FLOOD_OTHERS, FLOODS };

struct http2 {
	const struct http2_context *context;
	const struct http2_connection *functions;
	void *connection;
	int fd;
	struct peer peer;
	uint16_t port;
	bool secure;
	bool greeted;      /* our SETTINGS are out */
	bool settled;      /* the client's first SETTINGS have come */
	bool leaving;      /* the client sends no further requests: the connection ends when no stream is open */
	bool announced;    /* a GOAWAY is out that says that the end comes */
	bool draining;     /* and one that says which stream is the last: no further ones */
	bool failed;       /* and none goes on */
	bool shrink_table; /* the next block has to say that the dynamic table is not used (RFC 7541, section 4.2) */
	bool progress;
	uint8_t preface; /* bytes of the client's preface that have come */
	nghttp2_hd_inflater *inflater;
	int64_t send_window, receive_window;
	int64_t initial_window; /* of the streams, for us to send */
	uint32_t last_stream;   /* the highest that is answered */
	uint32_t highest;       /* the highest that the client has opened */
	/* Of the last streams of the client, those that we ended before it did: more may come on them. A bit for each. */
	uint64_t cut[CUT_REMEMBERED / 64];
	unsigned open, files, jobs; /* streams; those with an open file, and that wait for a job, of them */
	size_t waiting_size;        /* bytes of the requests of those that wait */
	size_t memory;              /* of all of them */
	struct idle *idle;          /* priorities of streams to come; NULL: none */
	struct streams streams[URGENCIES];
	/* a header block in several frames */
	unsigned char *block;
	size_t block_length;
	uint32_t block_stream; /* 0: none */
	uint8_t block_flags;
	unsigned continuations;
	/* frames of the current second */
	int64_t second;
	uint64_t count[FLOODS], sent; /* and bytes of DATA */
};

/* The priority of a stream that the client has not opened yet (RFC 9218, section 7.1). */
struct idle {
	unsigned count;
	struct {
		uint32_t id;
		struct priority priority;
	} stream[HTTP2_STREAMS_MAX];
};

/* Where the bit of a stream is in .cut. */
static inline uint64_t *cut_word(struct http2 *h, uint32_t id) { return &h->cut[id / 2 % CUT_REMEMBERED / 64]; }
static inline uint64_t cut_bit(uint32_t id) { return UINT64_C(1) << id / 2 % 64; }

struct stream *stream_find(const struct http2 *h, uint32_t id);
/* The client may not know yet that the stream has ended: what else comes on it is dropped. */
void stream_cut(struct http2 *h, uint32_t id);

void stream_set_priority(struct http2 *h, struct stream *s, struct priority priority);

/* Forgets the stream, after its lines have gone to the log. */
void stream_free(struct http2 *h, struct stream *s);

/* How its requests come; every one of them names its host. */
struct connection_info stream_connection_info(const struct http2 *h);

/* What has been asked for, to be answered. */
struct question {
	uint32_t id;
	const struct request *request;
	struct priority priority;
	bool receiving, cut; /* as of a stream */
};

/* Answers at once if nothing stands in the way, else opens a stream. false: no memory. */
bool stream_answer(struct http2 *h, const struct question *question, struct response *response, bool blocked,
				   struct http2_output *out);

/* Opens a stream that waits for the job, or (NULL) for one of HTTP2_FILES, and is answered then. false: no memory. */
bool stream_wait(struct http2 *h, const struct question *question, struct job *job);

/* The interim response 100. */
void stream_continue(struct http2 *h, uint32_t id, struct http2_output *out);

/* Logs a request with what answered it, now; request: NULL if it was not understood. false: no memory, and the line is
 * lost. */
bool stream_log(struct http2 *h, const struct request *request, struct slice user, int status, uint64_t bytes);

/* Refuses a request whose fields are too many. */
void stream_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out);

/* Whether a stream has something to send that the client has room for. */
bool stream_sendable(const struct http2 *h);

/* Does what http2_produce() does. */
void stream_produce(struct http2 *h, struct http2_output *out);

/* Appends a frame. What finds no room is lost, and the connection has failed. */
void output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags, uint32_t stream,
				  const void *payload, size_t length);
void output_number(struct http2 *h, struct http2_output *out, enum frame_type type, uint32_t stream, uint32_t number);

#endif
