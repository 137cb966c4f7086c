/* kernel_window.h - the measurements of kernel_memory.c. */
#ifndef GATLING_CONN_KERNEL_WINDOW_H
#define GATLING_CONN_KERNEL_WINDOW_H

#include <stdint.h>

/* All zero at first. */
struct kernel_windows {
	struct kernel_window {
		int64_t since_ms; /* when it began; 0: nothing is measured */
		int64_t bytes;    /* transferred before it */
		uint64_t held;    /* bytes of the kernel's memory */
		unsigned delay;   /* how long the client needs for what is unsent, as it was last known: see kernel_memory.c */
	} * window;           /* by descriptor; NULL: there has been no shortage */
	int count;
	uint64_t most; /* bytes that the kernel may hold for the worker's connections; 0: no limit */
	int64_t next_walk_ms;
	uint64_t sent;        /* bytes sent by the worker until the last walk */
	unsigned long closed; /* connections, since the last line in the log */
};

/* Ends the window of a connection that is being closed. */
static inline void kernel_windows_forget(const struct kernel_windows *w, int fd) {
	if (fd < w->count) w->window[fd] = (struct kernel_window){0};
}

#endif
