/* session.h - the inside of a session, for the files of http3/. http3.c handles frames, http3_request.c those of
 * requests, and http3_send.c writes those of responses. What does not depend on frames is in streams/. */
#ifndef GATLING_HTTP3_SESSION_H
#define GATLING_HTTP3_SESSION_H

#include "gatling/http3/http3_context.h"

enum { HTTP3_FRAME_HEADER = 16 }; /* two integers of up to 8 bytes (RFC 9000, section 16) */

enum http3_kind {
	HTTP3_REQUEST,
	HTTP3_UNKNOWN, /* a unidirectional stream whose type has not come */
	HTTP3_CONTROL,
	HTTP3_ENCODER,
	HTTP3_DECODER,
	HTTP3_IGNORED, /* a type that is not known: what comes is dropped */
	HTTP3_OWN      /* the server's */
};

enum http3_frame {
	HTTP3_FRAME_DATA = 0,
	HTTP3_FRAME_HEADERS = 1,
	HTTP3_FRAME_CANCEL_PUSH = 3,
	HTTP3_FRAME_SETTINGS = 4,
	HTTP3_FRAME_PUSH_PROMISE = 5,
	HTTP3_FRAME_GOAWAY = 7,
	HTTP3_FRAME_MAX_PUSH_ID = 0xd,
	HTTP3_FRAME_PRIORITY_UPDATE = 0xf0700, /* RFC 9218, section 7.2 */
	HTTP3_FRAME_PUSH_PRIORITY_UPDATE = 0xf0701
};

/* Part of what is sent on a stream. */
struct http3_chunk {
	struct http3_chunk *next;
	uint32_t length, sent, acknowledged;
	char bytes[];
};

struct http3_stream {
	int64_t id, opened_ms;
	uint8_t kind;
	bool has_head;     /* HTTP3_REQUEST: the request has come */
	bool has_trailers; /* its trailer fields have come */
	bool deaf;         /* what comes is dropped */
	bool ends;         /* the end follows what is to be sent */
	bool end_sent;
	bool blocked;                           /* the client's window is closed */
	bool in_frame;                          /* `left` bytes of a frame are to come, or the rest of an instruction */
	uint8_t head_length;                    /* bytes of head */
	unsigned char head[HTTP3_FRAME_HEADER]; /* part of the header of a frame, or of the type of a stream */
	uint64_t frame, left;
	char *payload; /* of a frame that is collected */
	size_t payload_length, payload_room;
	uint64_t owed;         /* bytes of content that have come, and count towards the window */
	struct stream *stream; /* the request, until its response has been sent; or NULL */
	struct http3_chunk *first, *last;
	struct http3_chunk *unsent; /* the first that is not sent completely; NULL: none */
	struct http3_stream *next, *previous;
};

enum http3_flood { HTTP3_FLOOD_OTHERS, HTTP3_FLOOD_RESETS, HTTP3_FLOODS };

struct http3 {
	struct streams streams; /* the first member, see http3_of() */
	const struct http3_context *context;
	const struct http3_transport *transport;
	struct http3_stream *all, *own;       /* own: the control stream */
	unsigned requests;                    /* of these: streams of requests, until all of the response has arrived */
	uint64_t unacknowledged;              /* bytes in chunks */
	uint64_t transferred;                 /* bytes that have come, or were acknowledged */
	size_t received;                      /* bytes of memory for payloads */
	struct unopened_priorities *unopened; /* or NULL */
	int64_t highest;                      /* ID of a request; -1: none */
	uint64_t goaway, max_push_id;         /* of the client's last frames */
	bool has[HTTP3_OWN];                  /* streams of these kinds have been opened */
	bool settled;                         /* the client's SETTINGS have come */
	bool announced, draining;             /* the first GOAWAY was sent, and the last one */
	/* counts of the current second */
	int64_t second;
	unsigned count[HTTP3_FLOODS];
};

static inline struct http3 *http3_of(const struct streams *streams) { return (struct http3 *)(uintptr_t)streams; }

/* --- http3.c --- */

/* Reads an integer (RFC 9000, section 16) from the front of *data. Returns false if it is not complete. */
bool http3_integer(struct slice *data, uint64_t *n);

/* Counts a frame or a reset. Returns HTTP3_EXCESSIVE_LOAD if there were too many in this second. */
enum http3_error http3_count(struct http3 *h, enum http3_flood kind);

/* --- http3_request.c: but for the last one these return HTTP3_OK, or the error that ends the connection --- */

/* Handles a complete field section: a request, or trailer fields. ends: nothing follows. */
enum http3_error http3_take_section(struct http3 *h, struct http3_stream *q, struct slice section, bool ends);

/* Handles content. */
enum http3_error http3_take_content(struct http3 *h, struct http3_stream *q, struct slice content, bool ends);

/* Answers a request whose field section is too long with 431. */
enum http3_error http3_refuse_section(struct http3 *h, struct http3_stream *q);

/* Ends a stream in both directions, and the request on it. */
void http3_reset(struct http3 *h, struct http3_stream *q, enum http3_error error);

/* --- http3_send.c --- */

extern const struct streams_protocol http3_protocol;

/* Writes an integer of two or four bytes (RFC 9000, section 16). Returns its end. */
char *http3_put_integer(char *at, uint64_t n);

/* Append bytes, or a frame, to what is to be sent on a stream. Return false without memory. */
bool http3_put(struct http3 *h, struct http3_stream *q, struct slice bytes);
bool http3_put_frame(struct http3 *h, struct http3_stream *q, uint64_t type, struct slice payload);

void http3_free_chunks(struct http3 *h, struct http3_stream *q);

#endif
