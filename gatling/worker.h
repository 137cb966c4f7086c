/* worker.h - a worker: a thread with a loop, listening sockets and a cache of its own. Workers share nothing on a
 * request's way. */
#ifndef GATLING_WORKER_H
#define GATLING_WORKER_H

#include "gatling/accept.h"
#include "gatling/conn/conn_context.h"
#include "gatling/conn/fair.h"
#include "gatling/conn/shed.h"
#include "gatling/log/log.h"
#include "gatling/options/options.h"
#include "gatling/site/response.h"

enum {
	CACHE_DESCRIPTORS_MAX = 1024, /* large files kept open without --cache-files, */
	CACHE_SHARE = 8,              /* but at most this part of the limit */
	UPSTREAMS_SHARE = 4,          /* this part of the limit is for connections to upstreams, if there are any; */
	FILES_SHARE = 4,              /* this part of the limit may be large files that are being sent */
	PUBLISH_MS = 1000,            /* after which publish() is called at the latest, if there is a status page */
	DESCRIPTORS_RESERVED = 32,    /* of the limit, for everything but connections and cached files */
};

struct control {
	uint8_t kind; /* enum cookie_kind */
	int fd;       /* of a socket pair, the other end is the main thread's */
};

/* The bytes that pass over it. */
enum control_message {
	CONTROL_READY = 'r',        /* from the worker: it can serve */
	CONTROL_FAILED = 'f',       /* from the worker: it could not start, see error */
	CONTROL_ALIVE = 'a',        /* from the worker: it has read a CONTROL_PING */
	CONTROL_SERVE = 's',        /* to it: begin to accept; the files of the first site are read, so that mistakes in
								 * them are reported at the start */
	CONTROL_PING = 'p',         /* to it */
	CONTROL_ANNOUNCE = 'n',     /* to it: go on, but let each connection end with its next answer */
	CONTROL_DRAIN = 'd',        /* to it: the same, but stop accepting, and end when there is no connection */
	CONTROL_LIMIT = 'l',        /* to it: the same, but close idle connections, and end after the timeout */
	CONTROL_CERTIFICATES = 'c', /* to it: the certificates have changed */
	CONTROL_QUIT = 'q'          /* to it: end now */
};

struct worker {
	/* set by the main thread */
	const struct options *options;
	int root;                 /* descriptor of the directory */
	struct acceptor acceptor; /* of which it opens the listeners, and says what memory TCP has */
	struct control control;
	struct limits *limits;                  /* NULL: none */
	struct log_queue *log;                  /* NULL: no log */
	struct certificate_files *certificates; /* NULL: no TLS */
	const struct challenges *challenges;    /* NULL: none */
	struct opener *connector;
	const char *directory; /* the path of root, outside of any chroot(2) */
	bool kernel_tls;
	bool shown; /* there is a status page */
	/* the worker's own */
	struct conn_context context;
	struct counters counters; /* the status page reads them */
	struct shed shed;
	struct fair fair;
	unsigned upstreams_max; /* connections to upstreams */
	bool private_descriptors, quit;
	int error;              /* why it could not start */
	int64_t drain_until_ms; /* 0: no limit */
	/* what common_fields of conn_context.h and common_block of http2_context.h point to */
	char common_text[RESPONSE_COMMON_LINES];
	char common_hpack[RESPONSE_COMMON_BLOCK];
};

/* Serves from CONTROL_SERVE on, until it is told to end. 0; or -1: it could not start (CONTROL_FAILED), or not go on
 * (after a line on stderr).
 * First takes a descriptor table of its own, where the system has such a thing: then the main thread closes its copies
 * of the worker's descriptors. Then sends CONTROL_READY or CONTROL_FAILED. */
int worker_run(struct worker *worker);

#endif
