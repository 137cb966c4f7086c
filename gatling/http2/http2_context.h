/* http2_context.h - the limits of HTTP/2, and the context that sessions share. */
#ifndef GATLING_HTTP2_HTTP2_CONTEXT_H
#define GATLING_HTTP2_HTTP2_CONTEXT_H

#include "gatling/hpack/shared_lines.h"
#include "gatling/streams/streams.h"

enum {
	HTTP2_BLOCK_MAX = 32 * 1024,   /* bytes of a header block with CONTINUATION frames, */
	HTTP2_CONTINUATIONS_MAX = 16,  /* and how many of these; more: HTTP2_ENHANCE_YOUR_CALM */
	HTTP2_BATCH = 65044,           /* bytes of frames that are written at a time; equal to TLS_BATCH */
	HTTP2_FRAMES = 160 * 1024,     /* bytes of the buffer: HTTP2_BATCH, and all frames that can answer one read */
	HTTP2_UNSENT_MAX = 256 * 1024, /* bytes of frames that the client has not read; more: the connection is closed */
	/* Frames per second, of kinds that are cheap to send but not to handle; more: HTTP2_ENHANCE_YOUR_CALM. */
	HTTP2_RESETS = 256,   /* RST_STREAM, and streams that the server resets */
	HTTP2_PINGS = 64,     /* PING */
	HTTP2_SETTINGS = 32,  /* SETTINGS */
	HTTP2_EMPTY = 64,     /* empty DATA and CONTINUATION */
	HTTP2_UPDATES = 2048, /* WINDOW_UPDATE; one more for each HTTP2_UPDATE_BYTES sent */
	HTTP2_UPDATE_BYTES = 1024,
	HTTP2_OTHERS = 512 /* PRIORITY, PRIORITY_UPDATE and unknown types */
};

/* What the sessions of a worker share. */
struct http2_context {
	const struct exchange_context *exchanges;
	struct shared_lines *lines;
	/* The fields that all responses have, over plain TCP and over TLS (see common_fields in conn_context.h): as a block
	 * of at most RESPONSE_COMMON_BLOCK bytes that may be sent after others, and as one that may not. */
	struct slice common_block[2];
	struct ready_block common_ready[2];
	size_t memory_max; /* bytes of memory that a session may take; more: HTTP2_ENHANCE_YOUR_CALM */
};

/* The next piece of a stream, a waiting header block or content, which the caller takes from its batch with
 * iob_take(). */
struct http2_piece {
	iob *iob;
	char *to;      /* where it goes: a block to the memory for it, content to the output behind FRAME_HEADER bytes */
	size_t length; /* how many bytes may be taken */
	struct stream *stream;
};

#endif
