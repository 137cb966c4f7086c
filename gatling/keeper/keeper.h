/* keeper.h - the process that starts the servers. It serves nothing, opens nothing and hears nothing of clients. It
 * stays outside the document root, with the rights of the user who has started it, so that it can start a server for
 * another directory, which those in the root cannot open any more:
 *
 *   1. A process of its own looks up DIR by name (lookout.h). If that is another directory than the one that is served,
 *      the keeper starts a server for it, which takes over from the one before (take_over.h).
 *   2. The one before ends when its connections have ended.
 *   3. If DIR is missing, or the new server fails, the serving one answers with 503 until DIR can be served.
 *   4. If one of the processes beside a server ends, another server takes over, since they can only be started before
 * it has given up its rights.
 *
 * It also stands for the servers to others: it passes signals on, ends as the last server has ended, and alone speaks
 * to the service manager. When it is killed, the servers end, too. Each server has a process group of its own, so that
 * the signals of a terminal come once. */
#ifndef GATLING_KEEPER_KEEPER_H
#define GATLING_KEEPER_KEEPER_H

#include <stdbool.h>

#include "gatling/keeper/link.h"
#include "gatling/keeper/service.h"
#include "gatling/keeper/sockets.h"

enum {
	KEEPER_SERVERS = 16, /* servers that finish their connections; one more is ended at once */
	KEEPER_PATIENT = 4,  /* as many of them, the last ones, without a time limit */
	KEEPER_PAUSE_S = 60, /* the longest pause between two tries to serve a directory */
	KEEPER_LAME_S = 5,   /* the shortest life of a server that is followed because it is lame; the next ones twice that,
							as long as none lives for KEEPER_PAUSE_S */
	KEEPER_SAME_MS = 1000 /* a signal that comes to the keeper and to a server in this time, from one sender, is one */
};

struct keeper_options {
	const char *root;
	bool terminal; /* SIGHUP means that the terminal is gone */
	bool sandbox;
	bool runs_programs; /* servers do */
};

/* Starts the keeper. Returns in each server with *link, 0 and the signals of `blocked` still blocked; in the keeper
 * only if no server could be started, with -1 after printing an error. sockets, udp: of a service manager, for the
 * first server; the following ones get them from the one before. */
int keeper_start(const struct keeper_options *options, struct service *service, struct sockets *sockets,
				 struct sockets *udp, const sigset_t *blocked, struct keeper_link *link);

#endif
