/* worker.h - a worker: a thread with a loop, listening sockets and a cache of its own. Most requests are served without
 * any data that workers share. */
#ifndef GATLING_WORKER_H
#define GATLING_WORKER_H

#include "gatling/conn/conn_context.h"
#include "gatling/load/accept.h"
#include "gatling/load/fair.h"
#include "gatling/load/shed.h"
#include "gatling/log/log.h"
#include "gatling/options/options.h"
#include "gatling/quic/quic.h"
#include "gatling/site/response.h"

enum {
	CACHE_DESCRIPTORS_MAX = 1024, /* at most so many large files are kept open without --limit cache-files, */
	CACHE_SHARE = 8,              /* and not more than 1/8 of the limit of descriptors */
	UPSTREAMS_SHARE = 4,          /* 1/4 of the limit is for connections to upstreams, if there are any */
	FILES_SHARE = 4,              /* 1/4 of the limit is for large files that are being sent */
	PUBLISH_MS = 1000,            /* publish() is called at least this often, if there is a status page */
	LOOK_MS = 100,                /* between two looks at what is due, as long as there are events */
	DESCRIPTORS_RESERVED = 32,    /* descriptors for everything but connections and cached files */
};

struct control {
	uint8_t kind; /* enum cookie_kind */
	int fd;       /* one end of a socket pair; the main thread has the other */
};

/* The messages between the main thread and a worker, a byte each. */
enum control_message {
	CONTROL_READY = 'r',  /* from the worker: it can serve */
	CONTROL_FAILED = 'f', /* from the worker: it could not start, see error */
	CONTROL_ALIVE = 'a',  /* from the worker: it has read a CONTROL_PING */
	/* To the worker: begin to accept. It reads the files of the first site, so that mistakes in them are reported at
	 * the start. */
	CONTROL_SERVE = 's',
	CONTROL_PING = 'p',         /* to it: answer with CONTROL_ALIVE */
	CONTROL_ANNOUNCE = 'n',     /* to it: end each connection with its next response, but still accept new ones */
	CONTROL_DRAIN = 'd',        /* to it: the same, but stop accepting, and end when no connection is left */
	CONTROL_LIMIT = 'l',        /* to it: the same, but also close idle connections, and end after the timeout */
	CONTROL_IDLE = 'i',         /* to it: the same as CONTROL_DRAIN, but also close idle connections */
	CONTROL_HANDED_OVER = 'h',  /* to it: a successor receives the datagrams from now on */
	CONTROL_CLOSE = 'x',        /* to it: answer everything with 503, since the directory is missing */
	CONTROL_OPEN = 'o',         /* to it: serve again */
	CONTROL_CERTIFICATES = 'c', /* to it: the certificates have changed */
	CONTROL_QUIT = 'q'          /* to it: end now */
};

struct worker {
	/* set by the main thread */
	const struct options *options;
	int root;                 /* descriptor of the root directory */
	struct mounts *mounts;    /* what is mounted */
	struct acceptor acceptor; /* its listeners and tcp_memory */
	struct control control;
	struct limits *limits;                  /* NULL: none */
	struct log_queue *log;                  /* NULL: no log */
	struct certificate_files *certificates; /* NULL: no TLS */
	const struct challenges *challenges;    /* NULL: none */
	const struct upstreams_shared *upstreams;
	const struct datagram_sockets *datagrams;
	const char *directory; /* the path of root, outside of any chroot(2) */
	bool kernel_tls;
	bool shown;      /* there is a status page */
	unsigned number; /* from 0 on */
	/* the worker's own */
	struct conn_context context;
	struct counters counters; /* the status page reads them */
	struct shed shed;
	struct fair fair;
	unsigned quic_port;     /* that is announced; 0: none */
	unsigned upstreams_max; /* how many connections to upstreams there may be */
	bool private_descriptors, quit;
	bool postponed;         /* some descriptors may be postponed, see io_postpone_read() */
	int error;              /* why it could not start */
	bool hangs;             /* it has ended, but a thread that uses its memory has not: see site_context_close() */
	int64_t drain_until_ms; /* 0: no limit */
	int64_t look_ms;        /* when to look again at what is due */
	/* common_fields of conn_context.h, and what is common in http2_context.h, point to these */
	char common_text[RESPONSE_COMMON_LINES];
	char common_block[2][RESPONSE_COMMON_BLOCK], common_ready[2][RESPONSE_COMMON_BLOCK];
};

/* Runs a worker in the calling thread. First takes a descriptor table of its own, if the system has such tables; then
 * the main thread closes its copies of the worker's descriptors. Sends CONTROL_READY or CONTROL_FAILED, and serves from
 * CONTROL_SERVE on until it is told to end. Returns 0, or -1 if it could not start, or could not go on (after printing
 * an error). */
int worker_run(struct worker *worker);

#endif
