/* upstreams.h - a worker's connections to upstreams: which address is asked next, and what is kept for the next
 * request. */
#ifndef GATLING_UPSTREAM_UPSTREAMS_H
#define GATLING_UPSTREAM_UPSTREAMS_H

#include <sys/queue.h>

#include "gatling/opener/opener.h"
#include "gatling/upstream/upstream_address.h"
#include "io/io.h"

enum {
	UPSTREAM_BUFFER = 64 * 1024, /* bytes, see upstreams_take_buffer() */
	UPSTREAMS_MAX = 64,          /* addresses that a worker remembers; more: 503 */
	UPSTREAM_IDLE_MAX = 128,     /* connections of an address that are kept */
	UPSTREAM_IDLE_MS = 4000,     /* so long: Node and uvicorn close theirs after 5 s */
	UPSTREAM_CONNECT_MS = 5000,  /* to connect */
	UPSTREAM_REST_MS = 10000,    /* an address that has failed is left out, if there are others */
	UPSTREAM_OTHERS = 8,         /* one address has at most all connections but this part, if there are others */
	UPSTREAM_CLIENT_SHARE = 8    /* when less than a quarter is left, a client gets no more than this part of all */
};

struct passage;
struct upstream;

/* A connection to an upstream. */
struct upstream_link {
	uint8_t kind;           /* COOKIE_UPSTREAM, see cookie.h */
	bool reused : 1;        /* it has had a response before */
	bool sends_at_once : 1; /* see upstreams_send_at_once() */
	bool had_much : 1;      /* the content of its last response was longer than PASSAGE_BUFFER */
	int fd;
	struct upstream *to;
	uint64_t network; /* of the client whose request it has, see peer_network(); 0: on a unix socket */
	LIST_ENTRY(upstream_link) used;
	struct passage *passage; /* whose it is; NULL: it is idle */
	LIST_ENTRY(upstream_link) idle;
};

struct upstreams;

struct upstreams_options {
	io_loop *loop;
	struct opener *connector; /* to unix sockets; outlives it */
	unsigned connections;     /* at most */
	bool gzip;                /* responses are compressed, see upstream_gzip.h */
};

/* Returns NULL: ENOMEM. */
struct upstreams *upstreams_new(const struct upstreams_options *options);

/* Closes what is idle. No passage may be left. NULL is allowed. */
void upstreams_free(struct upstreams *upstreams);

io_loop *upstreams_loop(const struct upstreams *upstreams);
bool upstreams_compress(const struct upstreams *upstreams);

/* Lends UPSTREAM_BUFFER bytes for what comes, and takes them back. Most responses come and go within one call, one
 * after the other, so one buffer is kept: it is in the processor's cache. NULL: ENOMEM. */
char *upstreams_take_buffer(struct upstreams *upstreams);
void upstreams_return_buffer(struct upstreams *upstreams, char *buffer);

/* Returns a connection to one of the addresses: of those that are not in `tried` (a bit for each), and may be asked,
 * the one with the fewest requests under way, of several
 * any. It is idle, unless `fresh`, or being made: it can be written to when it
 * is connected. Sets the bit. network: as in the link. NULL: there is none; *status is what to answer, 502 or 503. */
struct upstream_link *upstreams_take(struct upstreams *upstreams, const struct upstream_target *target, bool fresh,
									 uint64_t network, unsigned *tried, int *status);

/* Has what is written leave at once, even if what was written before is under way (TCP_NODELAY): for all but requests
 * that are one piece. */
void upstreams_send_at_once(struct upstream_link *link);

/* Gives a connection back. */
enum link_end {
	LINK_KEPT,  /* it can be used again */
	LINK_DONE,  /* it cannot, and nothing more is to go either way */
	LINK_BROKEN /* something may still be under way */
};
void upstreams_return(struct upstreams *upstreams, struct upstream_link *link, enum link_end end);

/* Gives back one whose upstream has ended it without a byte of a response: its address is left out for a while. */
void upstreams_return_ended(struct upstreams *upstreams, struct upstream_link *link);

/* Gives back one whose address could not be connected to, for an errno. Returns what to answer if there is no other
 * address: 502, 503 or 504. */
int upstreams_return_failed(struct upstreams *upstreams, struct upstream_link *link, int error);

/* Counts the head of a response, which has taken so long. */
void upstreams_note_response(const struct upstream_link *link, int status, int64_t ms);

/* Counts a failure of an upstream and says on stderr, once a minute for each, what it has done: "sent ...". */
void upstreams_complain(const struct upstream_link *link, const char *what);

/* Writes the address of the other end to out (UPSTREAM_TEXT_MAX bytes). */
void upstreams_format(const struct upstream_link *link, char *out);

/* Reports a line that a program has written to its standard error. */
void upstreams_report(const struct upstream_link *link, struct slice line);

/* What the loop reports of an idle one: it has been ended, or its time has. */
void upstreams_idle_readable(struct upstreams *upstreams, struct upstream_link *link);
void upstreams_idle_timed_out(struct upstreams *upstreams, struct upstream_link *link);

#endif
