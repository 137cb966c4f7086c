/* accept.h - how a worker accepts connections. In each turn it accepts only as many as leave time for the connections
 * that it has, and under overload only as many as admission.h says, so that what it accepts is answered soon. */
#ifndef GATLING_LOAD_ACCEPT_H
#define GATLING_LOAD_ACCEPT_H

#include <limits.h>
#include <unistd.h>

#include "gatling/conn/conn.h"
#include "gatling/load/admission.h"

enum {
	/* The kernel lowers it to the limit of the system (net.core.somaxconn, kern.ipc.somaxconn). */
	LISTEN_BACKLOG = INT_MAX,
	LISTENERS_MAX = 512,
	UNSENT_SHARE = 16, /* unsent bytes of all connections may take 1/16 of the kernel's memory for TCP */
	/* Connections that are accepted from a listener in one turn. They are fewer while the turn of the other connections
	 * takes longer than ACCEPT_TURN_MS (but one for each such time), or while requests wait longer than ACCEPT_WAIT_MS,
	 * of which one in ACCEPT_SAMPLE is measured. */
	ACCEPT_BATCH = 64,
	ACCEPT_TURN_MS = 2,
	ACCEPT_WAIT_MS = 10,
	ACCEPT_SAMPLE = 16,
	ACCEPT_LAST = 128,     /* batches that are accepted at most from a listener before it is closed */
	ACCEPT_PAUSE_MS = 100, /* before the next try, if there are no descriptors */
	/* Overload is found as in CoDel (RFC 8289). It begins if during an interval every connection accepted had waited
	 * longer than the target, and more than ACCEPT_QUEUE_LONG wait; or if requests have waited longer than
	 * ACCEPT_WAIT_LONG_MS all that time. */
	ACCEPT_TARGET_MS = 100,
	ACCEPT_INTERVAL_MS = 300,
	ACCEPT_QUEUE_LONG = 512,
	ACCEPT_WAIT_LONG_MS = 20,
	/* It ends this long after the last connection was refused. Until then only as many are accepted as are admitted,
	 * and the others are refused, at the latest when more than ACCEPT_WAITING_MOST wait. */
	ACCEPT_OVERLOAD_MS = 5000,
	ACCEPT_WAITING_MOST = 64,
	ACCEPT_REST_MS = 1,       /* after no more are admitted, before that is looked at again */
	ACCEPT_REFUSED_MAX = 256, /* connections refused in a turn; */
	ACCEPT_ANSWERED = 4       /* so many of them get an answer, the others are closed without one */
};

enum listening {
	LISTENER_LISTENS,
	LISTENER_STOPPED, /* it does not listen until some are admitted again */
	LISTENER_FAILED   /* it should listen, but does not */
};

struct listener {
	uint8_t kind; /* enum cookie_kind */
	int fd;
	int again; /* for listen(2): the same descriptor, or the one of listen_reserve() */
	/* A socket that holds the port while this one does not listen; -1: others use it, so it is never shut. */
	int holder;
	unsigned port;         /* 0 for a unix socket */
	bool secure;           /* speaks TLS */
	bool behind;           /* there was no time to read from all connections of the last batch */
	uint8_t listening;     /* enum listening */
	int64_t again_ms;      /* LISTENER_FAILED: when to try again */
	int batch;             /* how many are accepted in a turn without overload */
	int64_t queued_ms;     /* when the last batch was accepted, if it left connections waiting; otherwise 0 */
	int64_t late_since_ms; /* since when every connection had waited longer than ACCEPT_TARGET_MS; 0: they have not */
	int64_t overload_until_ms; /* 0: no overload */
	struct admission admission;
	unsigned came; /* connections since overload began, or since it listens again */
};

/* Closes the copies that the main thread has of a listener's sockets. */
static inline void listener_close(const struct listener *l) {
	close(l->fd);
	if (l->again != l->fd) close(l->again);
	if (l->holder != -1) close(l->holder);
}

/* The listening sockets of a worker. The main thread sets listener, listeners and tcp_memory, the worker context and
 * workers; the rest is all zero at first. */
struct acceptor {
	struct listener listener[LISTENERS_MAX];
	unsigned listeners;  /* 0 when they are closed */
	uint64_t tcp_memory; /* of platform_tcp(); 0: unknown */
	struct conn_context *context;
	unsigned workers;                      /* of the server */
	struct listener *ready[LISTENERS_MAX]; /* those that have connections in this turn */
	unsigned readies;
	unsigned sixteens;    /* connections / 16 + 1 when limit_unsent() was last in effect; 0: never */
	bool sampling;        /* waits are measured: connections or requests wait, a turn was long, or there is overload */
	unsigned reads;       /* while sampling: reads from connections, */
	unsigned reads_noted; /* and how many of them pace has */
	struct pace pace;     /* of requests on the connections that there are */
	struct waits waits;
	int64_t waits_long_since_ms; /* since when requests wait longer than ACCEPT_WAIT_LONG_MS; 0: they do not */
	int64_t paused_until_ms;     /* there are no descriptors */
	int64_t overload_until_ms;   /* the earliest of its listeners that listen; 0: none has overload */
	bool handshakes_left;        /* the last turn left TLS handshakes to be done */
	bool resting;                /* some listeners are not watched: they are shut or deaf, or must not accept now */
	bool last;                   /* accept_last() is running: nobody is refused, since the socket is about to close */
};

/* The function for conn_context.refusal. */
int accept_refusal(struct conn_context *context, const struct peer *peer);

/* The function for conn_context.make_room. */
bool accept_make_room(struct conn_context *context);

/* Notes how long the bytes of the connection that is read next have waited, unless they are the rest of a request or of
 * a handshake. While waits are measured, does so for one in ACCEPT_SAMPLE. */
void accept_note_wait(struct acceptor *acceptor, const struct conn *conn, int fd);

/* Notes that a listener has connections, for accept_all(). */
void accept_later(struct acceptor *acceptor, struct listener *listener);

/* Accepts a batch of connections from each listener that was noted, and reads from them. */
void accept_all(struct acceptor *acceptor);

/* Returns after how many milliseconds accept_all() has to be called again if nothing happens; -1: it need not be. */
int accept_due(const struct acceptor *acceptor, int64_t now_ms);

/* Accepts the connections that wait, up to ACCEPT_LAST batches, and closes the listeners. */
void accept_last(struct acceptor *acceptor);

/* Begins to accept, or begins again after a pause. */
void accept_resume(struct acceptor *acceptor);

/* Closes the listeners. */
void accept_stop(struct acceptor *acceptor);

#endif
