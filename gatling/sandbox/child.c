/* child.c - see child.h. */
#include "gatling/sandbox/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct child *children[CHILDREN_MAX]; /* those that run; NULL: a free place */

/* Replaces the first `old` by `new`. Returns whether there was one. */
static bool replace(const struct child *old, struct child *new) {
	for (int i = 0; i < CHILDREN_MAX; i++) {
		if (children[i] != old) continue;
		children[i] = new;
		return true;
	}
	return false;
}

int child_fork(struct child *child, int type) {
	int end[2];
	if (socketpair(AF_UNIX, type, 0, end) == -1) return -1;
	(void)fcntl(end[0], F_SETFD, FD_CLOEXEC);
	const bool room = replace(NULL, child);
	child->process = room ? fork() : -1;
	if (!room) errno = EMFILE;
	if (child->process == -1) {
		const int error = errno;
		(void)replace(child, NULL);
		close(end[0]);
		close(end[1]);
		*child = CHILD_NONE;
		errno = error;
		return -1;
	}
	child->channel = end[child->process == 0];
	close(end[child->process != 0]);
	return child->process != 0;
}

void child_hang_up(struct child *child) {
	if (child->channel != -1) close(child->channel);
	child->channel = -1;
}

void child_stop(struct child *child) {
	const struct timespec pause = {.tv_nsec = 1000000};
	child_hang_up(child);
	for (int ms = 0; child->process && ms < CHILD_WAIT_MS && waitpid(child->process, NULL, WNOHANG) == 0; ms++)
		nanosleep(&pause, NULL);
	child->process = 0;
	(void)replace(child, NULL);
}

bool child_any_has_ended(void) {
	bool any = false;
	for (int i = 0; i < CHILDREN_MAX; i++) {
		struct child *child = children[i];
		if (!child || !child->process || waitpid(child->process, NULL, WNOHANG) != child->process) continue;
		child->process = 0;
		any = true;
	}
	return any;
}
