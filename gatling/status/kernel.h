/* kernel.h - values that only the kernel knows: connections that it dropped before they could be accepted, the accept
 * queues, memory, retransmitted segments (proc(5), tcp(7)). Only Linux has them; elsewhere all are 0. */
#ifndef GATLING_STATUS_KERNEL_H
#define GATLING_STATUS_KERNEL_H

#include <stdbool.h>

#include "gatling/status/counters.h"

struct kernel_view {
	int netstat, snmp, sockstat, memory; /* files of /proc; -1: not there */
	uint64_t pressure;                   /* bytes, see struct platform_tcp */
	uint64_t first[VALUES];              /* the values when the view was opened */
	bool own;                            /* the kernel tells the drops of each socket: */
	uint32_t drops, drops_before;        /* their sum, since kernel_watch() and when that was called */
};

/* Opens the files. Call it before the root changes, which hides them. */
void kernel_open(struct kernel_view *view);
void kernel_close(struct kernel_view *view);

/* From now on counts connections that were dropped at these sockets, not at all of the machine, if the kernel tells. */
void kernel_watch(struct kernel_view *view, const int *sockets, unsigned count);

/* Fills in the values of the kernel, from KERNEL_QUEUE on. sockets: the `count` listening sockets; 0: they are left to
 * others. */
void kernel_read(struct kernel_view *view, const int *sockets, unsigned count, uint64_t value[VALUES]);

#endif
