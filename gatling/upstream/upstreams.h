/* upstreams.h - a worker's connections to upstreams: chooses the address for a request, and keeps idle connections. */
#ifndef GATLING_UPSTREAM_UPSTREAMS_H
#define GATLING_UPSTREAM_UPSTREAMS_H

#include <sys/queue.h>

#include "gatling/broker/broker.h"
#include "gatling/tls/tls_client.h"
#include "gatling/upstream/resolver.h"
#include "gatling/upstream/upstream_address.h"
#include "gatling/upstream/upstream_limits.h"
#include "gatling/upstream/upstream_writers.h"

enum {
	UPSTREAM_BUFFER = 64 * 1024, /* bytes, see upstreams_take_buffer() */
	UPSTREAMS_MAX = 64,          /* addresses to which a worker passes requests on at a time; more: 503. A site has at
									most half of those that others leave. */
	UPSTREAM_IDLE_MAX = 128,     /* idle connections that are kept for an address */
	UPSTREAM_IDLE_MS = 4000,     /* how long they are kept; Node and uvicorn close theirs after 5 s */
	UPSTREAM_REST_MS = 10000,    /* how long an address that has failed is avoided, if there are others */
	UPSTREAM_OTHERS = 8, /* one address leaves this part (1/8) of all connections to the others, if there are any */
	/* when less than a quarter is left, a client gets at most 1/8 of all, and a site 1/2 if there are others */
	UPSTREAM_CLIENT_SHARE = 8,
	UPSTREAM_SITE_SHARE = 2
};

struct proxied;
struct upstream;

/* For whom a connection is taken. */
struct upstream_asker {
	struct peer client;
	struct slice site;  /* the path of its directory, "" for the root */
	uint64_t site_hash; /* slice_hash() of that */
};

/* A connection to an upstream. */
struct upstream_link {
	uint8_t kind;           /* COOKIE_UPSTREAM, see cookie.h */
	bool reused : 1;        /* it has had a response before */
	bool sends_at_once : 1; /* see upstreams_send_at_once() */
	bool had_much : 1;      /* the content of its last response was longer than PROXIED_BUFFER */
	int fd;
	io_loop *loop;
	struct tls_client *tls; /* NULL: it is clear */
	struct upstream *to;
	struct peer client; /* whose request it carries */
	uint64_t site;      /* the hash of that of the asker */
	LIST_ENTRY(upstream_link) used;
	struct proxied *proxied; /* the proxied request that uses it; NULL: it is idle */
	LIST_ENTRY(upstream_link) idle;
};

struct upstreams;

/* What the workers share. */
struct upstreams_shared {
	const struct upstreams_allowed *allowed;
	/* Connects to unix sockets. A separate process, so that no worker waits for the disk of a log or a certificate. */
	struct broker *connector;
	struct resolver *resolver; /* NULL: no host has a name */
	SSL_CTX *tls;              /* NULL: no upstream is one of https */
};

struct upstreams_options {
	io_loop *loop;
	const struct upstreams_shared *shared; /* must outlive the upstreams */
	size_t *tls_memory;                    /* counts the bytes of TLS_CLIENT_MEMORY of all connections */
	unsigned connections;                  /* the most connections */
	bool compresses;                       /* responses are compressed, see upstream_coding.h */
};

/* Returns NULL if memory runs out. */
struct upstreams *upstreams_new(const struct upstreams_options *options);

/* Closes idle connections, and frees upstreams; NULL is allowed. No proxied request may be left. */
void upstreams_free(struct upstreams *upstreams);

/* Returns a copy of the options that upstreams_new() was given. */
const struct upstreams_options *upstreams_options(const struct upstreams *upstreams);

/* Returns whether the content of a request has more bytes than its limits allow, and reports that. */
bool upstreams_refuse_body(const struct upstream_limits *limits, uint64_t bytes);

/* Lend a buffer of UPSTREAM_BUFFER bytes for input, and take it back. upstreams_take_buffer() returns NULL if memory
 * runs out. One buffer is kept, which is in the processor's cache: most responses come and go within one call, one
 * after the other. */
char *upstreams_take_buffer(struct upstreams *upstreams);
void upstreams_return_buffer(struct upstreams *upstreams, char *buffer);

struct upstream_writers *upstreams_writers(struct upstreams *upstreams);

/* Returns a connection to an address of the target, or NULL with the status to answer, 502 or 503, in *status. Of the
 * addresses that may be used, those of its names among them, and are not in `tried` (a bit for each), chooses one with
 * the fewest requests under way, and sets its bit. The connection was idle, unless `fresh`, or is being made: it
 * becomes writable when it is connected, and upstream_link_handshake() follows. */
struct upstream_link *upstreams_take(struct upstreams *upstreams, const struct upstream_target *target, bool fresh,
									 const struct upstream_asker *asker, unsigned *tried, int *status);

/* --- upstream_link.c --- */

/* Begins to connect to an address. Returns the socket, or -1 with errno. */
int upstream_connect(struct broker *connector, const struct upstream_address *address);

/* Returns why an address could not be connected to, and what to do, for an errno. */
const char *upstream_connect_reason(const struct upstream_address *address, int error);

/* Continues the handshake of TLS, if the connection has one, and waits for what that needs next. Returns 0, EAGAIN, or
 * the errno for upstreams_return_failed(). */
int upstream_link_handshake(const struct upstream_link *link);

/* Do what io_tryread() and io_trywrite() do, see tls_client.h. */
ssize_t upstream_link_read(const struct upstream_link *link, void *buffer, size_t length);
ssize_t upstream_link_write(const struct upstream_link *link, struct slice bytes);

/* Returns whether the last write has failed with EAGAIN since TLS has to read something first. */
bool upstream_link_needs_input(const struct upstream_link *link);

/* Returns whether its bytes can go from or to another socket by io_splice(). */
bool upstream_link_splices(const struct upstream_link *link);

/* Ends this side of a tunnel. */
void upstream_link_shut(const struct upstream_link *link);

/* Makes writes leave at once, even if earlier ones are not acknowledged (TCP_NODELAY). Requests of a single piece do
 * not need it. */
void upstream_link_send_at_once(struct upstream_link *link);

/* --- upstreams.c --- */

/* Gives a connection back. */
enum link_end {
	LINK_KEPT,  /* it can be used again */
	LINK_DONE,  /* it cannot be used again, and nothing is under way */
	LINK_BROKEN /* something may still be under way */
};
void upstreams_return(struct upstreams *upstreams, struct upstream_link *link, enum link_end end);

/* Gives back a connection that the upstream has ended without a byte of a response. Its address is avoided for a
 * while. */
void upstreams_return_ended(struct upstreams *upstreams, struct upstream_link *link);

/* Gives back a connection that could not be made, for an errno. Returns the status to answer if there is no other
 * address: 502, 503 or 504. */
int upstreams_return_failed(struct upstreams *upstreams, struct upstream_link *link, int error);

/* Counts the head of a response, which took `ms` milliseconds. */
void upstreams_note_response(const struct upstream_link *link, int status, int64_t ms);

/* Counts a failure of an upstream, and logs what it has done ("sent ..."), at most once a minute for each upstream. */
void upstreams_complain(const struct upstream_link *link, const char *what);

/* Returns the address of the other end as text (UPSTREAM_TEXT_MAX bytes, see upstream_format()), as long as there is
 * the link. */
const char *upstreams_address(const struct upstream_link *link);

/* Reports a line that a program has written to its standard error. */
void upstreams_report(const struct upstream_link *link, struct slice line);

/* Called by the loop for an idle connection: the upstream has ended it, or its time is over. */
void upstreams_idle_readable(struct upstreams *upstreams, struct upstream_link *link);
void upstreams_idle_timed_out(struct upstreams *upstreams, struct upstream_link *link);

#endif
