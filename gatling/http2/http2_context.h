/* http2_context.h - the limits of HTTP/2, and what a session is given: what it answers from, and how it reaches its
 * connection. */
#ifndef GATLING_HTTP2_HTTP2_CONTEXT_H
#define GATLING_HTTP2_HTTP2_CONTEXT_H

#include "gatling/client/forwarded.h"
#include "gatling/client/limits.h"
#include "gatling/exchange/response_batch.h"
#include "gatling/site/site_context.h"
#include "gatling/upstream/upstreams.h"

enum {
	HTTP2_STREAMS_MAX = 128, /* open at once; more: HTTP2_REFUSED_STREAM */
	/* Of them with an open file, as CONN_PIPELINE_FILES, or content that is made while it is sent; the others wait. */
	HTTP2_FILES = 4,
	HTTP2_WAITING =
		128 * 1024, /* bytes of requests that wait for a job; with more the next ones are answered without */
	/* Bytes of the requests' content, and of the responses' (passage.h), that are held between a client and upstreams:
	 * of all streams. With the first, the window of the connection is shut; with the second, nothing more is read. */
	HTTP2_PASSED_CONTENT = 128 * 1024,
	HTTP2_PASSED_RESPONSES = 192 * 1024,
	HTTP2_BLOCK_MAX = 32 * 1024,   /* bytes of a header block in CONTINUATION frames, */
	HTTP2_CONTINUATIONS_MAX = 16,  /* and so many of them; more: HTTP2_ENHANCE_YOUR_CALM */
	HTTP2_BATCH = 65044,           /* bytes of frames written at a time: TLS_BATCH */
	HTTP2_FRAMES = 160 * 1024,     /* and room for them: HTTP2_BATCH, and all that can answer what is read at a time */
	HTTP2_UNSENT_MAX = 256 * 1024, /* bytes of frames that a client does not read; more: the connection ends */
	/* Frames a second that cost little to send and something to take; more: HTTP2_ENHANCE_YOUR_CALM. */
	HTTP2_RESETS = 256,   /* RST_STREAM, and streams that we reset */
	HTTP2_PINGS = 64,     /* PING */
	HTTP2_SETTINGS = 32,  /* SETTINGS */
	HTTP2_EMPTY = 64,     /* DATA and CONTINUATION with nothing in them */
	HTTP2_UPDATES = 2048, /* WINDOW_UPDATE, and one for each HTTP2_UPDATE_BYTES sent */
	HTTP2_UPDATE_BYTES = 1024,
	HTTP2_OTHERS = 512 /* PRIORITY, PRIORITY_UPDATE, and unknown ones */
};

/* What the sessions of a worker share. */
struct http2_context {
	struct site_context *site;
	struct batch_pool *batches;
	struct limits *limits; /* NULL: none */
	const struct trusted_proxies *trust;
	struct upstreams *upstreams; /* NULL: no request is passed on */

	/* The fields of all answers as a header block, over plain TCP and over TLS, see common_fields in conn_context.h:
	 * at most RESPONSE_COMMON_BLOCK bytes. */
	struct slice common_block[2];
	size_t memory_max; /* bytes that may be kept for one session; more: HTTP2_ENHANCE_YOUR_CALM */
};

/* How a session reaches the connection that it is on. */
struct http2_connection {
	void (*send)(void *connection);  /* there is something to send now: http2_next() has it */
	void (*close)(void *connection); /* the session cannot go on: there is no memory */
};

struct stream;

/* The next piece of a stream, which the caller takes from its batch (iob_take()): a header block that waits, or
 * content. */
struct http2_piece {
	iob *iob;
	char *to;      /* where to: a block to memory of http2_next(), content to the output, FRAME_HEADER bytes on */
	size_t length; /* how much may be taken */
	struct stream *stream;
};

#endif
