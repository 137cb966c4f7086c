/* workspace.h - memory of a thread for functions that need much of it while they run, and whose results may stay there
 * until they are called again.
 *
 * Thread-local arrays would do the same, but the C library writes to those of each thread that begins (glibc sets all
 * of them to zero): a megabyte was resident for every thread, whatever it did. */
#ifndef GATLING_BASE_WORKSPACE_H
#define GATLING_BASE_WORKSPACE_H

#include <stddef.h>

enum { WORKSPACE_MAX = 4 * 1024 * 1024 }; /* bytes of a thread; only what is used is resident */

/* Reserves that of the calling thread, until the thread ends. Returns 0, or -1: ENOMEM. Does nothing the second time.
 */
int workspace_open(void);

/* Returns memory for `bytes` bytes, of any type: always the same at one place of the source in one thread. The thread
 * has called workspace_open(); otherwise this does, and ends the process without memory. */
#define WORKSPACE(bytes)                                                                                               \
	({                                                                                                                 \
		static _Thread_local void *place;                                                                              \
		place ? place : workspace_take(&place, (bytes));                                                               \
	})

/* The part of WORKSPACE() that is not inline. */
void *workspace_take(void **place, size_t bytes);

#endif
