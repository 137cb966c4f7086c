/* worker.h - one thread with everything it needs to answer: its loop, its listening sockets, its cache. Workers share
 * nothing. */
#ifndef GATLING_WORKER_H
#define GATLING_WORKER_H

#include "gatling/conn/shed.h"
#include "gatling/log/access.h"
#include "gatling/log/log.h"
#include "gatling/options.h"
#include "gatling/site/answer.h"
#include "gatling/tls/tls.h"
#include "io/io.h"

enum {
	LISTENERS_MAX = 2 * ADDRESSES_MAX, /* at each address perhaps one for TLS */
	/* Bytes read at a time: TLS_ROOM, behind part of a head (HEAD_MAX) or of a frame. */
	SCRATCH = 56 * 1024,
	FRAMES = 160 * 1024,          /* bytes of frames of HTTP/2: HTTP2_BATCH, and all that can answer SCRATCH bytes */
	ACCEPT_BATCH = 64,            /* connections taken from a listening socket in one turn */
	ACCEPT_PAUSE_MS = 100,        /* without descriptors, until the next try */
	DRAIN_BATCHES = 128,          /* taken at most from each listening socket before it is closed */
	CACHE_DESCRIPTORS_MAX = 1024, /* large files kept open; at most an eighth of the limit */
	FILES_SHARE = 4,              /* this part of the limit may be large files that are being sent */
	DESCRIPTORS_RESERVED = 32,    /* of the limit, for everything but connections and cached files */
	/* Bytes sent to who has waited for room until requests are looked at again: so long they wait. With the smaller
	 * share 10 MB cost a fifth more. */
	SHARE_LEAST = 64 * 1024, /* while there are requests that are answered at once, the last no AT_ONCE_MS ago, */
	SHARE_MOST = 256 * 1024, /* and else */
	AT_ONCE_MS = 10,
	DATE_ROOM = 64
};

/* What an adopted descriptor belongs to; the first member of the cookie. */
enum cookie_kind { COOKIE_LISTENER, COOKIE_CONTROL, COOKIE_CONNECTION };

struct listener {
	enum cookie_kind kind;
	int fd;
	unsigned port;       /* 0 for a unix socket */
	bool secure;         /* speaks TLS */
	const char *address; /* as given in the options; NULL: all */
};

struct control {
	enum cookie_kind kind;
	int fd; /* of a socket pair, the other end is the main thread's */
};

/* The bytes that pass over it. */
enum control_message {
	CONTROL_READY = 'r',        /* from the worker: it serves */
	CONTROL_FAILED = 'f',       /* from the worker: it could not start, see error */
	CONTROL_DRAIN = 'd',        /* to it: stop accepting, finish what is under way, end */
	CONTROL_LIMIT = 'l',        /* the same within the timeout */
	CONTROL_CERTIFICATES = 'c', /* to it: there are other certificates */
	CONTROL_SITE = 's',         /* look at what the files of the first site say: mistakes are told at the start */
	CONTROL_QUIT = 'q'          /* end now */
};

struct response_batch; /* response_batch.h */

struct worker {
	/* set by the main thread */
	const struct options *options;
	int root; /* descriptor of the directory */
	struct listener listener[LISTENERS_MAX];
	unsigned listeners;
	struct control control;
	struct log_lines *log;                  /* NULL: no log */
	struct certificate_files *certificates; /* NULL: no TLS */
	bool kernel_tls;
	/* the worker's own */
	io_loop *loop;
	struct content content;
	bool private_descriptors, draining, quit;
	int error;              /* why it could not start */
	int64_t drain_until_ms; /* 0: no limit */
	unsigned connections, connections_max;
	size_t memory; /* bytes that are kept for them, see budget.h */
	struct shed shed;
	uint64_t share, sent;         /* bytes of this turn: SHARE_LEAST or SHARE_MOST; those used up */
	int64_t at_once_ms;           /* when a request was answered at once */
	struct response_batch *spare; /* for reuse */
	unsigned spares;
	struct tls_worker *tls; /* NULL: no TLS */
	unsigned handshakes;    /* taken on in this turn */
	time_t second;          /* of the dates below */
	char server_date_text[2 * DATE_ROOM];
	struct slice server_date[2]; /* the fields Server and Date, each a line; over TLS perhaps one more */
	char server_date_hpack[3 * DATE_ROOM];
	struct slice server_date_block[2]; /* the same for HTTP/2 */
	char frames[FRAMES];
	char log_date[ACCESS_DATE_MAX], log_text[ACCESS_LINE_MAX];
	char scratch[SCRATCH];
};

/* Serves until it is told to end: 0; or cannot start (see CONTROL_FAILED) or go on (after a line about why): -1. First
 * takes a descriptor table of its own, where there is such a thing (then the main thread's copies of the worker's
 * descriptors are the main thread's to close), then sends CONTROL_READY or CONTROL_FAILED. */
int worker_run(struct worker *worker);

#endif
