/* workspace.h - memory of a thread for functions that need much of it while they run, and whose results may stay there
 * until they are called again.
 *
 * Thread-local arrays would do the same, but the C library writes to those of each thread that begins (glibc sets all
 * of them to zero): a megabyte was resident for every thread, whatever it did. */
#ifndef GATLING_BASE_WORKSPACE_H
#define GATLING_BASE_WORKSPACE_H

#include <stddef.h>

/* Bytes of a thread, half as many again as all places take; only what is used is resident. */
enum { WORKSPACE_MAX = 1536 * 1024 };

/* Reserves the memory of the calling thread, until the thread ends. Returns 0, or -1 with errno ENOMEM. Does nothing
 * the second time. */
int workspace_open(void);

/* Returns memory for `bytes` bytes, of any type: always the same at one place of the source in one thread. The thread
 * has called workspace_open(); otherwise this does, and ends the process if there is no memory. */
#define WORKSPACE(bytes)                                                                                               \
	({                                                                                                                 \
		static _Thread_local void *place;                                                                              \
		workspace_get(&place, (bytes));                                                                                \
	})

/* The function of WORKSPACE(): *place is NULL the first time. */
__attribute__((alloc_size(2), returns_nonnull, noinline)) void *workspace_get(void **place, size_t bytes);

#endif
