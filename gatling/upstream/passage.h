/* passage.h - a request that is passed on to an upstream, and its response. It does not depend on the client's
 * protocol.
 *
 * The content of neither is held as a whole: passage_put() takes as much as there is room for, and the next piece of a
 * response is read after the last one has been taken. A passage calls ready(owner) from the loop when its state has
 * changed, content has come, or there is room for content, but never from a function that its owner calls. ready() may
 * free the passage. */
#ifndef GATLING_UPSTREAM_PASSAGE_H
#define GATLING_UPSTREAM_PASSAGE_H

#include "gatling/upstream/upstream_cgi.h"
#include "gatling/upstream/upstreams.h"

enum {
	PASSAGE_BUFFER = UPSTREAM_BUFFER, /* bytes of content in each direction */
	PASSAGE_HELD = 32 * 1024,         /* of chunked content that is held back, to tell a program its length */
	PASSAGE_RELAYED = 128 * 1024,     /* of a response, the most that go from socket to socket at a time */
	PASSAGE_SMALL = 16 * 1024, /* of a response with a struct passage_share, or that is compressed; read with a head if
								  much content is expected */
	PASSAGE_WAIT_MS = 60 * 1000,        /* to wait for the first byte of a response, and between bytes */
	PASSAGE_CONTENT_LEAST = 4096,       /* bytes of a request's content that restart a time limit; fewer do not */
	PASSAGE_TUNNEL_MS = 60 * 60 * 1000, /* to wait for a byte in a tunnel */
	PASSAGE_INTERIM_MAX = 16            /* interim responses (1xx); more: 502 */
};

enum passage_state {
	PASSAGE_CONNECTS,
	PASSAGE_WAITS,   /* it waits for a response */
	PASSAGE_HEAD,    /* the head of the response, or of an interim one (1xx except 101), has come */
	PASSAGE_CONTENT, /* the content of the response comes */
	PASSAGE_TUNNEL,  /* the protocol has been changed (101): bytes go both ways */
	PASSAGE_ENDED,   /* the response is complete */
	PASSAGE_FAILED
};

/* How much the passages of one client may hold of their responses together. It must outlive them. */
struct passage_share {
	size_t held, most; /* bytes */
	bool starved;      /* some of them wait until others hold less: passage_feed() has to be called for all */
};

/* Begins to pass a request on; copies what it needs of it. share: NULL if the client has no other passages. Returns
 * NULL if memory runs out. */
struct passage *passage_new(struct upstreams *upstreams, const struct upstream_target *target,
							const struct upstream_request *request, struct passage_share *share);

/* Makes a passage that has waited for its share read again, if there is some left. */
void passage_feed(struct passage *passage);

/* Sets the function to call. Must be called before the loop goes on. */
void passage_on_ready(struct passage *passage, void (*ready)(void *owner), void *owner);

/* Frees a passage; NULL is allowed. Its connection is used again if the response was complete. */
void passage_free(struct passage *passage);

enum passage_state passage_state(const struct passage *passage);

/* Returns how many bytes of memory the passage takes. */
size_t passage_memory(const struct passage *passage);

/* Writes the address of the upstream to out (UPSTREAM_TEXT_MAX bytes). Returns false if it is not known. */
bool passage_format(const struct passage *passage, char *out);

/* Returns how many milliseconds the head of the response took. */
unsigned passage_answered_ms(const struct passage *passage);

/* PASSAGE_FAILED: returns the status to answer if there is no response yet: 502, 503 or 504, or that of
 * passage_fail(). */
int passage_failure(const struct passage *passage);

/* Returns for how many times PASSAGE_WAIT_MS there was no progress because of the client, not of the upstream. A piece
 * of a response counts as progress only when all of it has been taken (passage_take()). ready() is called each time.
 * HTTP/1.1 does not use this, since a connection has a deadline of its own. */
unsigned passage_stalls(const struct passage *passage);

/* Gives up the upstream. status: the answer, if there is no response yet. */
void passage_fail(struct passage *passage, int status);

/* Takes content of the request, or bytes of a tunnel. Returns how many bytes it has taken: fewer than content.length if
 * there is no room. */
size_t passage_put(struct passage *passage, struct slice content);

/* passage_draw() moves content of the request straight from a socket to the upstream: at most length bytes, unchanged
 * and unseen. Bytes that the upstream does not take are in buffer, which has that size, and have to be put. Returns
 * what io_relay() returns. It may be called only if passage_draws(). */
bool passage_draws(const struct passage *passage);
ssize_t passage_draw(struct passage *passage, int fd, void *buffer, size_t length, size_t *sent);

/* Ends the content of the request, with a section for upstream_trailers(), or the client's side of a tunnel. */
void passage_put_end(struct passage *passage, struct slice trailers);

/* Sends bytes that have been put and not been sent. */
void passage_flush(struct passage *passage);

/* Returns how many bytes of content there is room for, at most PASSAGE_BUFFER. */
size_t passage_room(const struct passage *passage);

/* Returns how many bytes of content, with its frames, the upstream has not taken yet. */
size_t passage_unsent(const struct passage *passage);

/* PASSAGE_HEAD: passage_head() returns the head and its field lines. Both are valid until passage_take_head(), which
 * continues with what follows the head. */
const struct upstream_response *passage_head(const struct passage *passage, struct slice *lines);
void passage_take_head(struct passage *passage);

/* PASSAGE_CONTENT, PASSAGE_TUNNEL: passage_content() returns the next piece of content, or an empty slice if none has
 * come. The piece is valid until passage_take(). */
struct slice passage_content(struct passage *passage);
void passage_take(struct passage *passage);

/* passage_relay() lets content of known length go straight from the upstream to the socket fd, unchanged, until it is
 * called with -1; meanwhile the owner must not write to fd. passage_relayed() returns how many bytes have been moved
 * since it was last called. */
void passage_relay(struct passage *passage, int fd);
uint64_t passage_relayed(struct passage *passage);

/* PASSAGE_ENDED: returns the trailer fields that are passed on, in the form of hpack_fields(), or an empty slice. */
struct slice passage_trailers(const struct passage *passage);

/* Called by the loop for the connection of a passage. */
void passage_readable(struct passage *passage);
void passage_writable(struct passage *passage);
void passage_timed_out(struct passage *passage);

#endif
