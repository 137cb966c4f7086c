/* worker.h - a worker: a thread with a loop, listening sockets and a cache of its own. Workers share nothing on a
 * request's way. */
#ifndef GATLING_WORKER_H
#define GATLING_WORKER_H

#include "gatling/conn/conn_context.h"
#include "gatling/conn/shed.h"
#include "gatling/log/log.h"
#include "gatling/options.h"
#include "gatling/site/response.h"

enum {
	LISTENERS_MAX = 2 * ADDRESSES_MAX, /* at each address perhaps one for TLS */
	ACCEPT_BATCH = 64,                 /* connections taken from a listening socket in one turn */
	ACCEPT_PAUSE_MS = 100,             /* without descriptors, until the next try */
	DRAIN_BATCHES = 128,               /* taken at most from each listening socket before it is closed */
	CACHE_DESCRIPTORS_MAX = 1024,      /* large files kept open; at most an eighth of the limit */
	FILES_SHARE = 4,                   /* this part of the limit may be large files that are being sent */
	UNSENT_SHARE =
		16, /* of the memory that the kernel has for TCP, for what connections have not sent; see unsent_max() */
	UNSENT_MIN = 16 * 1024,       /* bytes that a connection may have in any case, */
	UNSENT_MAX = 4 * 1024 * 1024, /* and all that it ever has by default (tcp_wmem) */
	DESCRIPTORS_RESERVED = 32,    /* of the limit, for everything but connections and cached files */
};

struct listener {
	uint8_t kind; /* enum cookie_kind */
	int fd;
	unsigned port;       /* 0 for a unix socket */
	bool secure;         /* speaks TLS */
	const char *address; /* as given in the options; NULL: all */
};

struct control {
	uint8_t kind; /* enum cookie_kind */
	int fd;       /* of a socket pair, the other end is the main thread's */
};

/* The bytes that pass over it. */
enum control_message {
	CONTROL_READY = 'r',        /* from the worker: it serves */
	CONTROL_FAILED = 'f',       /* from the worker: it could not start, see error */
	CONTROL_DRAIN = 'd',        /* to it: stop accepting, finish what is under way, then end */
	CONTROL_LIMIT = 'l',        /* to it: the same, but end after the timeout */
	CONTROL_CERTIFICATES = 'c', /* to it: the certificates have changed */
	CONTROL_SITE = 's', /* to it: read the files of the first site, so that mistakes are reported at the start */
	CONTROL_QUIT = 'q'  /* to it: end now */
};

struct worker {
	/* set by the main thread */
	const struct options *options;
	int root; /* descriptor of the directory */
	struct listener listener[LISTENERS_MAX];
	unsigned listeners;
	struct control control;
	uint64_t tcp_memory;                    /* as platform_tcp() says; 0: unknown */
	struct limits *limits;                  /* NULL: none */
	struct log_lines *log;                  /* NULL: no log */
	struct certificate_files *certificates; /* NULL: no TLS */
	bool kernel_tls;
	/* the worker's own */
	struct conn_context context;
	struct shed shed;
	uint32_t unsent_max; /* for new connections; 0: not set yet */
	size_t memory_peak;  /* most of conn_context_memory() since memory was given back to the system */
	bool private_descriptors, quit;
	int error;              /* why it could not start */
	int64_t drain_until_ms; /* 0: no limit */
	char server_date_text[2 * RESPONSE_DATE_ROOM];
	char server_date_hpack[3 * RESPONSE_DATE_ROOM];
};

/* Serves until it is told to end. 0; or -1: it could not start (CONTROL_FAILED), or not go on (after a line on stderr).
 * First takes a descriptor table of its own, where the system has such a thing: then the main thread closes its copies
 * of the worker's descriptors. Then sends CONTROL_READY or CONTROL_FAILED. */
int worker_run(struct worker *worker);

#endif
