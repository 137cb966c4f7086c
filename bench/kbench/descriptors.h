/* descriptors.h - for socket.c and bind.c: frees and reuses one low descriptor before each call, so that the search for
 * the lowest free one always begins there. */
#ifndef KBENCH_DESCRIPTORS_H
#define KBENCH_DESCRIPTORS_H

#include <sys/socket.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"

enum {
	DESCRIPTORS_HOLE = 10,
	DESCRIPTORS_HOLE_FROM = 50
}; /* the index of that socket, and the number of sockets from which on this is done, as in bindbench */

/* Closes a socket and makes a new one. Returns 0, or -1 with errno. */
static inline int descriptors_renew(int *fd, int family, int type) {
	if (close(*fd) == -1) return -1;
	*fd = socket(family, type, 0);
	return *fd == -1 ? -1 : 0;
}

#endif
