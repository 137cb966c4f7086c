/* take_over.h - a new process takes the place of a running one without closing a listening socket, so that no
 * connection is lost (--take-over PATH):
 *
 *   1. The new process connects to the unix socket PATH. If none listens there, it starts as usual, and binds PATH.
 *   2. The old one makes sure that this is root, or the user who started it, and sends its sockets, that of PATH among
 *      them.
 *   3. The new one gets ready to serve and says so, or why it cannot.
 *   4. The old one confirms that, stops accepting, and ends when its connections have ended. The new one begins.
 *
 * If either ends meanwhile, the other goes on. */
#ifndef GATLING_TAKE_OVER_H
#define GATLING_TAKE_OVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <pthread.h>
#include <sys/types.h>

#include "gatling/sockets.h"

enum {
	TAKE_OVER_ANSWER_S = 10,  /* for either to answer the other at once */
	TAKE_OVER_START_S = 300,  /* for the new one to get ready */
	TAKE_OVER_PATIENCE = 100, /* tries to bind an address that a process which ends has for a moment */
	TAKE_OVER_TEXT_MAX = 512  /* bytes of the reason why it cannot */
};

struct take_over {
	const char *path; /* NULL: not wanted; the rest is unused */
	int listener;     /* of PATH; -1: none yet */
	int channel;      /* to the old process; -1: there is none */
	uid_t owner;      /* who started this process */
	/* of the thread that waits for successors */
	struct sockets *sockets;
	pthread_mutex_t mutex; /* of the sockets */
	pthread_t main_thread;
	atomic_bool happened;
};

#define TAKE_OVER_NONE                                                                                                 \
	{ .listener = -1, .channel = -1 }

/* Asks the process that serves PATH for its sockets, and adds them to those of this process. path: NULL is allowed,
 * and then these functions do nothing. Returns 0, also if there is no such process, or -1 after printing an error. */
int take_over_begin(struct take_over *take_over, const char *path, struct sockets *sockets);

/* Returns whether there is an old process. */
bool take_over_has_old(const struct take_over *take_over);

/* Binds PATH, unless its socket came from the old process. To be called when the other sockets are bound, which only
 * one process can do, and before the root changes. Returns 0, or -1 after printing an error. */
int take_over_bind(struct take_over *take_over);

/* Tells the old process that this one is ready. Returns 0 when it has stopped accepting or has ended, or -1 after
 * printing an error if it does not wait any more: then this process has to end. */
int take_over_finish(struct take_over *take_over);

/* Tells the old process that this one cannot serve, and why: what notice_cannot() has printed last. */
void take_over_give_up(struct take_over *take_over);

/* Starts a thread that gives the sockets to a successor. When one has taken over, take_over_happened() returns true and
 * the calling thread gets a SIGUSR2. Returns 0, or -1 after printing an error. */
int take_over_offer(struct take_over *take_over, struct sockets *sockets);
bool take_over_happened(const struct take_over *take_over);

/* Closes the sockets of the process, also without take_over_offer(): there is nothing to be given any more. */
void take_over_close(struct take_over *take_over, struct sockets *sockets);

#endif
