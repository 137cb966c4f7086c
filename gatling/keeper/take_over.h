/* take_over.h - a new process takes the place of a running one without closing a listening socket, so that no
 * connection is lost (--take-over PATH):
 *
 *   1. The new process connects to the unix socket PATH. If nobody listens there, it starts as usual, and binds PATH.
 *   2. The old one checks that the new one belongs to root, or to the user who started the old one, and greets it. When
 *      the new one has answered (take_over_protocol.h), the old one sends its sockets, also that of PATH.
 *   3. The new one gets ready to serve, and reports that it is, or why it cannot.
 *   4. The old one confirms that, stops accepting, and ends when its connections have ended. The new one begins.
 *
 * A successor that the keeper has started (keeper.h) needs no PATH: both processes get an end of a socket, and instead
 * of 1 and 2 the new one asks, and the old one sends its sockets. The thread that does this also hears the keeper.
 *
 * If either of them ends meanwhile, the other one goes on. */
#ifndef GATLING_KEEPER_TAKE_OVER_H
#define GATLING_KEEPER_TAKE_OVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <pthread.h>
#include <sys/types.h>

#include "gatling/keeper/datagram_sockets.h"
#include "gatling/keeper/link.h"
#include "gatling/keeper/sockets.h"

enum {
	TAKE_OVER_CHANNELS = 8,   /* processes that are connected to PATH at a time */
	TAKE_OVER_GREETING_S = 5, /* seconds in which the new process answers the greeting */
	TAKE_OVER_ANSWER_S = 10,  /* seconds in which the old one answers, and the new one takes the sockets */
	TAKE_OVER_START_S = 300,  /* seconds in which the new one gets ready, once it has answered the greeting */
	TAKE_OVER_PATIENCE = 100, /* tries to bind an address that the ending process still uses for a moment */
	TAKE_OVER_TEXT_MAX = 512  /* bytes of the reason why the new one cannot serve */
};

struct take_over {
	const char *path; /* NULL: no --take-over */
	int listener;     /* of PATH; -1: none yet */
	int channel;      /* the socket to the old process; -1: none */
	bool follows;     /* the old process is a server of the same keeper */
	uid_t owner;      /* the user who started this process */
	/* for the thread that waits for successors */
	const struct keeper_link *link;
	const char *directory; /* DIR, for lines about it */
	struct sockets *sockets;
	const struct datagram_sockets *datagrams;
	pthread_mutex_t mutex; /* guards *sockets */
	pthread_t main_thread;
	atomic_bool happened;
	atomic_bool lame;     /* a successor is wanted, but not for another directory */
	atomic_bool followed; /* it was by a server of the same keeper, for another directory */
	atomic_bool missing;  /* DIR cannot be served */
	atomic_bool alone;    /* the keeper has ended */
	atomic_uint signals;  /* that the keeper has passed on: 1 << signal; the main thread sets it to 0 */
};

#define TAKE_OVER_NONE                                                                                                 \
	{ .listener = -1, .channel = -1 }

/* Sets whom this process takes over from, if link names a predecessor. */
void take_over_open(struct take_over *take_over, const struct keeper_link *link);

/* Gets the sockets of the predecessor, or else of the process that serves PATH, and adds them to *sockets and
 * *datagrams. path: NULL is allowed. Returns 0, also if there is no such process, or -1 after printing an error. */
int take_over_begin(struct take_over *take_over, const char *path, struct sockets *sockets,
					struct datagram_sockets *datagrams);

/* Returns whether there is an old process to take over from. */
bool take_over_has_old(const struct take_over *take_over);

/* Returns whether it is a server of the same keeper, for another directory. */
bool take_over_follows(const struct take_over *take_over);

/* Binds PATH, unless its socket came from the old process. Call it after the other sockets are bound, which only one
 * process can do, and before the root changes. Returns 0, or -1 after printing an error. */
int take_over_bind(struct take_over *take_over);

/* Tells the old process that this one is ready. Returns 0 when it has confirmed that or has ended, or -1 after printing
 * an error if it has given up waiting: then this process has to end. */
int take_over_finish(struct take_over *take_over);

/* Tells the old process that this one cannot serve, and as the reason the last line of notice_cannot(). */
void take_over_give_up(struct take_over *take_over);

/* Starts a thread that passes the sockets to a successor, and hears the keeper. When one has taken over,
 * take_over_happened() returns true. Then, and when another atomic member has changed, the calling thread gets a
 * SIGUSR2. datagrams: they do not change. directory: DIR. Returns 0, or -1 after printing an error. */
int take_over_offer(struct take_over *take_over, struct sockets *sockets, const struct datagram_sockets *datagrams,
					const char *directory);
bool take_over_happened(const struct take_over *take_over);

/* Closes the listening sockets of the process, so that no successor gets any socket. It also works without
 * take_over_offer(). */
void take_over_close(struct take_over *take_over, struct sockets *sockets);

#endif
