/* child.h - a process beside the server, with rights of its own, and the channel to it. It ends when the channel does.
 * Only the main thread starts and stops one. */
#ifndef GATLING_SANDBOX_CHILD_H
#define GATLING_SANDBOX_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

enum { CHILDREN_MAX = 8, CHILD_WAIT_MS = 1000 };

struct child {
	pid_t process; /* 0: it has not been started, or has ended */
	int channel;   /* this end of the socket pair; -1: none */
};

#define CHILD_NONE ((struct child){.channel = -1})

/* Forks, with a socket pair of the type (SOCK_STREAM, ...) whose end here is closed by exec(3). *child is CHILD_NONE,
 * and stays where it is until child_stop(). Returns 1 here, 0 in the child, which has the other end in its copy of
 * *child, or -1 with errno. */
int child_fork(struct child *child, int type);

/* Closes the channel. */
void child_hang_up(struct child *child);

/* Closes the channel and waits for the end of the process, for CHILD_WAIT_MS at most: it may hang, with a disk. */
void child_stop(struct child *child);

/* Returns whether one of the processes has ended by itself. Each is reported once. */
bool child_any_has_ended(void);

#endif
