/* accept.h - how a worker takes connections from its listening sockets: as many in a turn as leave time for those that
 * it has, and under overload a ration. So what is accepted is answered soon, however much comes. */
#ifndef GATLING_ACCEPT_H
#define GATLING_ACCEPT_H

#include <limits.h>
#include <unistd.h>

#include "gatling/conn/conn.h"
#include "gatling/gate.h"
#include "gatling/options/options.h"
#include "gatling/ration.h"

enum {
	/* The kernel reduces it to the limit of the system (net.core.somaxconn, kern.ipc.somaxconn). */
	LISTEN_BACKLOG = INT_MAX,
	LISTENERS_MAX = 4 * 2 * ADDRESSES_MAX, /* at each address perhaps one for TLS, and surplus ones (listen.c) */
	UNSENT_SHARE = 16,     /* this part of the kernel's memory for TCP is for what connections have not sent */
	ACCEPT_BATCH = 64,     /* connections taken from a listening socket in one turn; fewer while that of */
	ACCEPT_TURN_MS = 2,    /* the others takes longer than that, but one in each such time, */
	ACCEPT_WAIT_MS = 10,   /* or requests wait for longer than that: */
	ACCEPT_SAMPLE = 16,    /* one in so many is looked at */
	ACCEPT_LAST = 128,     /* batches taken at most from each listening socket before it is closed */
	ACCEPT_PAUSE_MS = 100, /* without descriptors, until the next try */
	/* Overload begins as CoDel finds it (RFC 8289): in an interval each connection that came to the front of the queue
	 * had waited longer than the target, and many wait; or requests waited for long all the time. */
	ACCEPT_TARGET_MS = 100,
	ACCEPT_INTERVAL_MS = 300,
	ACCEPT_QUEUE_LONG = 512,
	ACCEPT_WAIT_LONG_MS = 20,
	/* Until so long after the last one that was refused, only a ration is taken (ration.h), and the rest is refused, at
	 * the latest when more than ACCEPT_WAITING_MOST wait. */
	ACCEPT_OVERLOAD_MS = 5000,
	ACCEPT_WAITING_MOST = 64,
	ACCEPT_REST_MS = 1,       /* without a ration, until the next look */
	ACCEPT_REFUSED_MAX = 256, /* in a turn, */
	ACCEPT_ANSWERED = 4       /* of which so many get an answer: the others are only closed */
};

/* Whether a socket listens. */
enum listening {
	LISTENS,
	SHUT, /* not until there is a ration again */
	DEAF  /* it should, and does not */
};

struct listener {
	uint8_t kind; /* enum cookie_kind */
	int fd;
	int keeper;    /* a socket that keeps its port while it does not listen; -1: it is never shut, as others use it */
	unsigned port; /* 0 for a unix socket */
	bool secure;   /* speaks TLS */
	bool behind;   /* there was no time to read from all that were taken the last time */
	uint8_t listening;     /* enum listening */
	int64_t again_ms;      /* DEAF: when to try again */
	int batch;             /* so many are taken in a turn, without overload */
	int64_t queued_ms;     /* when more connections waited than were taken the last time; 0: no more did */
	int64_t late_since_ms; /* since then all that were taken had waited for longer than ACCEPT_TARGET_MS; 0: not so */
	int64_t overload_until_ms; /* 0: there is none */
	struct ration ration;
	unsigned came;     /* so many have come since overload began, or it listened again */
	struct gate *gate; /* of its address */
};

/* Closes the copies that the main thread has of a listener's sockets. */
static inline void listener_close(const struct listener *l) {
	close(l->fd);
	if (l->keeper != -1) close(l->keeper);
}

/* The listening sockets of a worker. The main thread sets listener, listeners and tcp_memory, the worker context and
 * workers; the rest is all zero at first. */
struct acceptor {
	struct listener listener[LISTENERS_MAX];
	unsigned listeners;  /* 0 when they are closed */
	uint64_t tcp_memory; /* as platform_tcp() says; 0: unknown */
	struct conn_context *context;
	unsigned workers;                      /* that there are */
	struct listener *ready[LISTENERS_MAX]; /* that have connections, in this turn */
	unsigned readies;
	unsigned sixteens;    /* of connections, begun, when it was looked at how much they may leave unsent; 0: never */
	bool sampling;        /* waits are looked at: connections or requests wait, a turn was long, or there is overload */
	unsigned reads;       /* meanwhile, */
	unsigned reads_noted; /* of which so many are in pace: requests on connections that it had */
	struct pace pace;
	struct waits waits;
	int64_t waits_long_since_ms; /* since then longer than ACCEPT_WAIT_LONG_MS; 0: not so */
	int64_t paused_until_ms;     /* without descriptors */
	int64_t overload_until_ms;   /* the earliest of its listeners that listen; 0: none has overload */
	bool handshakes_left;        /* in this turn there were more than are done */
	bool resting;                /* some listeners are not watched: they are shut, deaf, or may take none now */
	bool last;                   /* accept_last() is under way: no client is refused, as none would come again */
};

/* What conn_context.refusal is. */
int accept_refusal(struct conn_context *context, const struct peer *peer);

/* Returns whether to look at how long what can be read has waited. */
static inline bool accept_samples(struct acceptor *acceptor) {
	return acceptor->sampling && ++acceptor->reads % ACCEPT_SAMPLE == 0;
}

/* Notes how long the connection's request has waited, if this may be one: not the rest of one, nor of a handshake. */
void accept_note_wait(struct acceptor *acceptor, const struct conn *conn, int fd);

/* Notes that a listener has connections, for accept_all(). */
void accept_later(struct acceptor *acceptor, struct listener *listener);

/* Takes a batch of connections from each listener that was noted, and reads from them. */
void accept_all(struct acceptor *acceptor);

/* Returns how many milliseconds later at most accept_all() is to be called again; -1: when something happens. */
int accept_due(const struct acceptor *acceptor);

/* Takes the batches that wait, and closes the listeners. */
void accept_last(struct acceptor *acceptor);

/* Begins, or begins again after a pause. */
void accept_resume(struct acceptor *acceptor);

/* Closes the listeners. */
void accept_stop(struct acceptor *acceptor);

#endif
