/* kernel_memory.h - closes clients that do not take what is sent to them, when that fills the kernel's memory for TCP:
 * at its limit (tcp_mem, tcp(7)) the kernel drops segments and resets connections, whosever they are. A limit of unsent
 * bytes for each connection (accept.c) is not enough: segments of 512 bytes take 2.4 times as much as their content. */
#ifndef GATLING_LOAD_KERNEL_MEMORY_H
#define GATLING_LOAD_KERNEL_MEMORY_H

#include <stdint.h>

enum {
	/* The connections of all workers may take this part (1/4) of the memory above which the kernel makes their buffers
	 * smaller. When half of this is taken, it is measured how fast each client takes it. */
	KERNEL_MEMORY_SHARE = 4,
	KERNEL_MEMORY_RELIEF = 8,       /* the part (1/8) of what a worker's may take that is free after some were closed */
	KERNEL_MEMORY_LEAST = 64,       /* connections of a worker for which the kernel is asked */
	KERNEL_MEMORY_WALK_MS = 1000,   /* the time between two walks over all connections, */
	KERNEL_MEMORY_REST_MS = 4000,   /* and while less than a quarter of the worker's part is taken */
	KERNEL_MEMORY_KNOWN_MS = 4000,  /* a client has had something to take for so long when its pace is known; */
	KERNEL_MEMORY_WINDOW_MS = 10000 /* after this time it is measured anew */
};

struct conn_context;

/* Returns in how many milliseconds kernel_memory_enforce() is due, or -1. */
int kernel_memory_due(const struct conn_context *context, int64_t now_ms);

/* Asks the kernel what it holds for each connection (SO_MEMINFO). If that is more than the worker's part, closes those
 * whose clients need longest for what they have not acknowledged, at the pace of the measurement, but none that needs
 * less than four seconds. */
void kernel_memory_enforce(struct conn_context *context);

#endif
