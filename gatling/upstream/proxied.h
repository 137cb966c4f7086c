/* proxied.h - a request that is passed on to an upstream, and its response. It does not depend on the client's
 * protocol.
 *
 * The content of neither is held as a whole: proxied_put() takes as much as there is room for, and the next piece of a
 * response is read after the last one has been taken. A proxied request calls ready(owner) from the loop when its state
 * has changed, content has come, or there is room for content, but never from a function that its owner calls. ready()
 * may free the proxied request. */
#ifndef GATLING_UPSTREAM_PROXIED_H
#define GATLING_UPSTREAM_PROXIED_H

#include "gatling/upstream/upstream_cgi.h"
#include "gatling/upstream/upstreams.h"

enum {
	PROXIED_BUFFER = UPSTREAM_BUFFER, /* bytes of content in each direction */
	PROXIED_HELD = 32 * 1024,         /* of chunked content that is held back, to tell a program its length */
	PROXIED_SPLICED = 128 * 1024,     /* of a response, the most that go from socket to socket at a time */
	PROXIED_SMALL = 16 * 1024, /* of a response with a struct proxied_share, or that is compressed; read with a head if
								  much content is expected */
	PROXIED_WRITERS = 320 * 1024, /* bytes held of a share, with those of another response's compression, up to which it
									 is begun: two of zstd; */
	PROXIED_WRITERS_LASTING = 2,  /* for a stream of events up to this part (1/2) */
	PROXIED_STALL_MS = 60 * 1000, /* to wait for the client, see proxied_stalls() */
	PROXIED_CONTENT_LEAST = 4096, /* bytes of a request's content that restart a time limit; fewer do not */
	PROXIED_INTERIM_MAX = 16      /* interim responses (1xx); more: 502 */
};

enum proxied_state {
	PROXIED_CONNECTS,
	PROXIED_WAITS,   /* it waits for a response */
	PROXIED_HEAD,    /* the head of the response, or of an interim one (1xx except 101), has come */
	PROXIED_CONTENT, /* the content of the response comes */
	PROXIED_TUNNEL,  /* the protocol has been changed (101): bytes go both ways */
	PROXIED_ENDED,   /* the response is complete */
	PROXIED_FAILED
};

/* How much the proxied requests of one client may hold of their responses together. It must outlive them. Half of it is
 * for those whose content the client takes, so that others, whose windows it has closed, do not hold them up. */
struct proxied_share {
	size_t held, most; /* bytes */
	bool starved;      /* some of them wait until others hold less, or the client takes more: proxied_feed() has to be
						  called for all */
	size_t (*room)(const void *owner); /* returns how many bytes of content the client takes now of one */
};

/* Begins to pass a request on; copies what it needs of it. share: NULL if the client has no other proxied requests.
 * Returns NULL if memory runs out. */
struct proxied *proxied_new(struct upstreams *upstreams, const struct upstream_target *target,
							const struct upstream_request *request, struct proxied_share *share,
							void (*ready)(void *owner), void *owner);

/* Makes a proxied request that has waited for its share read again, if there is some left. */
void proxied_feed(struct proxied *proxied);

/* Frees a proxied request; NULL is allowed. Its connection is used again if the response was complete. */
void proxied_free(struct proxied *proxied);

/* Returns how many bytes of memory the proxied request takes. */
size_t proxied_memory(const struct proxied *proxied);

/* Returns the address of the upstream, or "" if it is not known. */
const char *proxied_address(const struct proxied *proxied);

/* Returns how many milliseconds the head of the response took. */
unsigned proxied_answered_ms(const struct proxied *proxied);

/* PROXIED_FAILED: returns the status to answer if there is no response yet: 502, 503 or 504, or that of
 * proxied_fail(). */
int proxied_failure(const struct proxied *proxied);

/* Returns for how many times PROXIED_STALL_MS there was no progress because of the client, not of the upstream. A piece
 * of a response counts as progress only when all of it has been taken (proxied_take()). ready() is called each time.
 * HTTP/1.1 does not use this, since a connection has a deadline of its own. */
unsigned proxied_stalls(const struct proxied *proxied);

/* Gives up the upstream. status: the answer, if there is no response yet. */
void proxied_fail(struct proxied *proxied, int status);

/* Takes content of the request, or bytes of a tunnel. Returns how many bytes it has taken: fewer than content.length if
 * there is no room. With a share there always is some, since the client's windows limit what comes. */
size_t proxied_put(struct proxied *proxied, struct slice content);

/* proxied_splice_from() moves content of the request straight from a socket to the upstream: at most length bytes,
 * unchanged and unseen. Bytes that the upstream does not take are in buffer, which has that size, and have to be put.
 * Returns what io_splice() returns. It may be called only if proxied_splices(). */
bool proxied_splices(const struct proxied *proxied);
ssize_t proxied_splice_from(struct proxied *proxied, int fd, void *buffer, size_t length, size_t *sent);

/* Ends the content of the request, with a section for upstream_trailers(), or the client's side of a tunnel. */
void proxied_put_end(struct proxied *proxied, struct slice trailers);

/* Sends bytes that have been put and not been sent. */
void proxied_flush(struct proxied *proxied);

/* Returns how many bytes of content there is room for, at most PROXIED_BUFFER. */
size_t proxied_room(const struct proxied *proxied);

/* Returns how many bytes of content, with its frames, the upstream has not taken yet. */
size_t proxied_unsent(const struct proxied *proxied);

/* Returns whether they are held back until more comes, or the end, so that a program can be told their length. */
bool proxied_holds(const struct proxied *proxied);

/* PROXIED_HEAD: proxied_head() returns the head and its field lines. Both are valid until proxied_take_head(), which
 * continues with what follows the head. */
const struct upstream_response *proxied_head(const struct proxied *proxied, struct slice *lines);
void proxied_take_head(struct proxied *proxied);

/* proxied_next() returns the state, or PROXIED_WAITS if nothing has come; with PROXIED_CONTENT the next piece of
 * content, or of a tunnel, which is valid until proxied_take(). */
enum proxied_state proxied_next(struct proxied *proxied, struct slice *piece);
void proxied_take(struct proxied *proxied);

/* proxied_splice_to() lets content of known length go straight from the upstream to the socket fd, unchanged, until it
 * is called with -1; meanwhile the owner must not write to fd. proxied_spliced() returns how many bytes have been moved
 * since it was last called. */
void proxied_splice_to(struct proxied *proxied, int fd);
uint64_t proxied_spliced(struct proxied *proxied);

/* PROXIED_ENDED: returns the trailer fields that are passed on, in the form of hpack_fields(), or an empty slice. */
struct slice proxied_trailers(const struct proxied *proxied);

/* Called by the loop for the connection of a proxied request. */
void proxied_readable(struct proxied *proxied);
void proxied_writable(struct proxied *proxied);
void proxied_timed_out(struct proxied *proxied);

#endif
