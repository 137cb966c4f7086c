/* descriptors.h - what socket.c and bind.c do on purpose: one low number is freed and taken again before each call, so
 * that the search for the lowest free one always has a way to go. */
#ifndef KBENCH_DESCRIPTORS_H
#define KBENCH_DESCRIPTORS_H

#include <sys/socket.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"

enum {
	DESCRIPTORS_HOLE = 10,
	DESCRIPTORS_HOLE_FROM = 50
}; /* which socket, and from how many on: as bindbench has it */

/* 0, or -1 with errno. */
static inline int descriptors_renew(int *fd, int family, int type) {
	if (close(*fd) == -1) return -1;
	*fd = socket(family, type, 0);
	return *fd == -1 ? -1 : 0;
}

#endif
