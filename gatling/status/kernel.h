/* kernel.h - what the kernel knows and the server does not see: connections that it dropped before they could be
 * accepted, the queue of those that wait, memory, segments sent again (proc(5), tcp(7)). Linux; elsewhere all is 0. */
#ifndef GATLING_STATUS_KERNEL_H
#define GATLING_STATUS_KERNEL_H

#include "gatling/status/counters.h"

struct kernel_view {
	int netstat, snmp, sockstat, memory; /* files of /proc; -1: not there */
	uint64_t pressure;                   /* bytes, see struct platform_tcp */
	uint64_t first[VALUES];              /* those of the kernel, when the view was opened */
};

/* Opens the files, which cannot be opened later: to be called before the root changes. */
void kernel_open(struct kernel_view *view);
void kernel_close(struct kernel_view *view);

/* Fills in the values of the kernel, from KERNEL_QUEUE on. sockets: of so many listening sockets. */
void kernel_read(const struct kernel_view *view, const int *sockets, unsigned count, uint64_t value[VALUES]);

#endif
