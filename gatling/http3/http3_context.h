/* http3_context.h - the limits of HTTP/3, the context that sessions share, and what a session and its transport give
 * each other. */
#ifndef GATLING_HTTP3_HTTP3_CONTEXT_H
#define GATLING_HTTP3_HTTP3_CONTEXT_H

#include "gatling/http3/field_section.h"
#include "gatling/streams/streams.h"

enum {
	HTTP3_SECTION_MAX = 32 * 1024, /* bytes of an encoded field section; more: 431 */
	HTTP3_DATA = 16383,            /* bytes of content in a DATA frame, whose length takes two bytes */
	/* Bytes that were sent and not acknowledged, of all streams: as many as a path of 200 Mbit/s with a round trip of
	 * 80 ms holds. More wait. */
	HTTP3_UNACKNOWLEDGED = 2 * 1024 * 1024,
	HTTP3_UNI_STREAMS = 3, /* that the client may open: for control, and two for QPACK; see RFC 9114, section 6.2 */
	HTTP3_STREAM_WINDOW = 64 * 1024, /* bytes that the client may send ahead on a stream */
	/* Frames in a second, of kinds that are cheap to send but not to handle; more: HTTP3_EXCESSIVE_LOAD. */
	HTTP3_OTHERS = 512, /* PRIORITY_UPDATE, unknown and empty frames */
	HTTP3_RESETS = 256  /* requests whose streams end without a whole response: either side has reset or stopped them */
};

/* Error codes (RFC 9114, section 8.1; RFC 9204, section 6). */
enum http3_error {
	HTTP3_OK = 0, /* no error; not sent */
	HTTP3_NO_ERROR = 0x100,
	HTTP3_GENERAL_PROTOCOL_ERROR = 0x101,
	HTTP3_INTERNAL_ERROR = 0x102,
	HTTP3_STREAM_CREATION_ERROR = 0x103,
	HTTP3_CLOSED_CRITICAL_STREAM = 0x104,
	HTTP3_FRAME_UNEXPECTED = 0x105,
	HTTP3_FRAME_ERROR = 0x106,
	HTTP3_EXCESSIVE_LOAD = 0x107,
	HTTP3_ID_ERROR = 0x108,
	HTTP3_SETTINGS_ERROR = 0x109,
	HTTP3_MISSING_SETTINGS = 0x10a,
	HTTP3_REQUEST_REJECTED = 0x10b,
	HTTP3_REQUEST_CANCELLED = 0x10c,
	HTTP3_REQUEST_INCOMPLETE = 0x10d,
	HTTP3_MESSAGE_ERROR = 0x10e,
	QPACK_DECOMPRESSION_FAILED = 0x200,
	QPACK_ENCODER_STREAM_ERROR = 0x201,
	QPACK_DECODER_STREAM_ERROR = 0x202
};

/* What the sessions of a worker share. */
struct http3_context {
	const struct exchange_context *exchanges;
	io_loop *loop;
	struct field_decoder *decoder;
	struct slice common_block; /* as of struct streams */
	size_t memory_max;         /* bytes of memory that a session may take; more: HTTP3_EXCESSIVE_LOAD */
};

/* What a session asks of the transport, whose connection each function gets. */
struct http3_transport {
	struct streams_connection connection;
	/* The client may send n further bytes on a stream, and as many more in all. */
	void (*consumed)(void *connection, int64_t id, uint64_t n);
	/* Ends the server's side of a stream with an error, and asks the client to end its side. */
	void (*reset)(void *connection, int64_t id, enum http3_error error);
	/* Asks the client to end its side of a stream. */
	void (*stop)(void *connection, int64_t id, enum http3_error error);
	/* Returns a descriptor of the loop that reads of files are for, see iob_take(); or -1 if there are none left. It is
	 * ready for writing when such a read is done; then streams_go_on() has to be called. */
	int (*reader)(void *connection);
};

struct http3_stream;

/* What is to be sent on a stream. */
struct http3_piece {
	struct http3_stream *stream;
	int64_t id;
	const char *at; /* stays valid until it is acknowledged */
	size_t length;
	bool ends; /* nothing follows on this stream */
};

#endif
