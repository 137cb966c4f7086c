/* passage.h - one request that is passed on to an upstream, and its response on the way back. Knows nothing of how the
 * client's side travels.
 *
 * The content of neither is held whole: passage_put() takes what there is room for, and the next piece of a response is
 * read when the last one has been taken. A passage calls ready(owner) from the loop when its state has changed, when
 * there is content, or room for it; never while one of its own functions is called. Then the owner may free it. */
#ifndef GATLING_UPSTREAM_PASSAGE_H
#define GATLING_UPSTREAM_PASSAGE_H

#include "gatling/upstream/upstream_cgi.h"
#include "gatling/upstream/upstreams.h"

enum {
	PASSAGE_BUFFER = UPSTREAM_BUFFER, /* bytes of content in each direction */
	PASSAGE_HELD = 32 * 1024,         /* of a request in chunks: a program is told how long it is if it is no longer */
	PASSAGE_RELAYED = 128 * 1024,     /* of a response that go from socket to socket at a time, at most */
	PASSAGE_SMALL = 16 * 1024,    /* of a response with a struct passage_share, or that is compressed, or read with the
								   * head where much is expected */
	PASSAGE_WAIT_MS = 60 * 1000,  /* for the first byte of a response, and between bytes */
	PASSAGE_CONTENT_LEAST = 4096, /* bytes of the content of a request that begin a time limit anew; fewer do not */
	PASSAGE_TUNNEL_MS = 60 * 60 * 1000, /* for any byte when the protocol has been changed */
	PASSAGE_INTERIM_MAX = 16            /* responses with 1xx; more: 502 */
};

enum passage_state {
	PASSAGE_CONNECTS,
	PASSAGE_WAITS,   /* for a response */
	PASSAGE_HEAD,    /* the head of a response is there, or that of an interim one (status 1xx but 101) */
	PASSAGE_CONTENT, /* its content comes */
	PASSAGE_TUNNEL,  /* the protocol has been changed (101): bytes go both ways */
	PASSAGE_ENDED,   /* the response is complete */
	PASSAGE_FAILED
};

/* What the passages of one client may hold of their responses together. It outlives them. */
struct passage_share {
	size_t held, most; /* bytes */
	bool starved;      /* some of them wait for others to hold less: then passage_feed() is to be called for all */
};

/* Begins. All that it needs of the request is copied. share: NULL if the client has no other. NULL: ENOMEM. */
struct passage *passage_new(struct upstreams *upstreams, const struct upstream_target *target,
							const struct upstream_request *request, struct passage_share *share);

/* Has it read on if its share is not used up any more. */
void passage_feed(struct passage *passage);

/* Sets what is called, which has to be done before the loop goes on. */
void passage_on_ready(struct passage *passage, void (*ready)(void *owner), void *owner);

/* Ends it. The connection is used again if the response was complete. NULL is allowed. */
void passage_free(struct passage *passage);

enum passage_state passage_state(const struct passage *passage);

/* Returns the bytes of memory that it takes. */
size_t passage_memory(const struct passage *passage);

/* Writes the address of the upstream to out (UPSTREAM_TEXT_MAX bytes). Returns false if it is not known. */
bool passage_format(const struct passage *passage, char *out);

/* Returns how long the head of the response took. */
unsigned passage_answered_ms(const struct passage *passage);

/* PASSAGE_FAILED: returns what to answer, if nothing has been answered yet: 502, 503 or 504, or what passage_fail() was
 * told. */
int passage_failure(const struct passage *passage);

/* Returns how many times PASSAGE_WAIT_MS nothing has moved because the client, not the upstream, does not go on; of a
 * response a piece moves when it has been taken whole (passage_take()). Each time ready() is called. HTTP/1.1 does not
 * ask: a connection has a deadline of its own. */
unsigned passage_stalls(const struct passage *passage);

/* Gives the upstream up. status: what to answer, if nothing has been answered yet. */
void passage_fail(struct passage *passage, int status);

/* Takes content of the request, or bytes of a tunnel. Returns how many: fewer, if there is no room. */
size_t passage_put(struct passage *passage, struct slice content);

/* Moves content of the request, as it is, straight from a socket to the upstream: at most length bytes, without a look
 * at them. Those that it does not take are in the buffer, of that size, and are to be put. Returns what io_relay()
 * does. Only if passage_draws(). */
bool passage_draws(const struct passage *passage);
ssize_t passage_draw(struct passage *passage, int fd, void *buffer, size_t length, size_t *sent);

/* Says that the content of the request is complete, with what upstream_trailers() takes, or that the client sends no
 * more through a tunnel. */
void passage_put_end(struct passage *passage, struct slice trailers);

/* Sends what has been put, but not yet. */
void passage_flush(struct passage *passage);

/* Returns how many bytes of content are taken for certain: up to PASSAGE_BUFFER. */
size_t passage_room(const struct passage *passage);

/* Returns how many bytes of content, and of its framing, the upstream has not taken yet. */
size_t passage_unsent(const struct passage *passage);

/* PASSAGE_HEAD: returns the head, and its field lines; both are good until passage_take_head(), which goes on. */
const struct upstream_response *passage_head(const struct passage *passage, struct slice *lines);
void passage_take_head(struct passage *passage);

/* PASSAGE_CONTENT, PASSAGE_TUNNEL: returns the next piece of content, which stays until passage_take() takes it; empty:
 * none has come. */
struct slice passage_content(struct passage *passage);
void passage_take(struct passage *passage);

/* Lets content of known length go straight from the upstream to the socket fd, as it is; -1: no more, it comes by
 * passage_content(). Meanwhile the owner writes nothing to fd. passage_relayed() returns how many bytes have gone since
 * it was called last. */
void passage_relay(struct passage *passage, int fd);
uint64_t passage_relayed(struct passage *passage);

/* PASSAGE_ENDED: returns the trailer fields that are passed on, as hpack_fields() takes them; empty: none. */
struct slice passage_trailers(const struct passage *passage);

/* What the loop reports of a connection with a passage. */
void passage_readable(struct passage *passage);
void passage_writable(struct passage *passage);
void passage_timed_out(struct passage *passage);

#endif
