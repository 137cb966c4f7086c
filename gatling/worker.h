/* worker.h - one thread with everything it needs to answer: its loop, its listening sockets, its cache. Workers share
 * nothing. */
#ifndef GATLING_WORKER_H
#define GATLING_WORKER_H

#include "gatling/conn/context.h"
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
	DESCRIPTORS_RESERVED = 32,         /* of the limit, for everything but connections and cached files */
};

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
	struct conn_context context;
	struct shed shed;
	bool private_descriptors, quit;
	int error;              /* why it could not start */
	int64_t drain_until_ms; /* 0: no limit */
	char server_date_text[2 * RESPONSE_DATE_ROOM];
	char server_date_hpack[3 * RESPONSE_DATE_ROOM];
};

/* Serves until it is told to end: 0; or cannot start (see CONTROL_FAILED) or go on (after a line about why): -1. First
 * takes a descriptor table of its own, where there is such a thing (then the main thread's copies of the worker's
 * descriptors are the main thread's to close), then sends CONTROL_READY or CONTROL_FAILED. */
int worker_run(struct worker *worker);

#endif
