/* workspace.h - memory of a thread, for functions that need tens of KiB while they run, more than their stack should
 * have. They may pass it down, but what they return does not refer to it: no function has a buffer that its callers do
 * not see.
 *
 * Thread-local arrays would do the same, but the C library (glibc) writes zeros to those of each thread that begins,
 * which made a megabyte resident for every thread, whatever it did. */
#ifndef GATLING_BASE_WORKSPACE_H
#define GATLING_BASE_WORKSPACE_H

#include <stddef.h>

/* Bytes for each thread, half as many again as all uses of WORKSPACE() take; only the pages that are used are
 * resident. */
enum { WORKSPACE_MAX = 1472 * 1024 };

/* Reserves the memory of the calling thread, until that ends. Returns 0, or -1 with errno ENOMEM. Does nothing the
 * second time. */
int workspace_open(void);

/* Returns `bytes` bytes of memory, for any type. A place in the source gets the same memory each time in one thread. If
 * the thread has not called workspace_open(), this does, and aborts the process without memory. */
#define WORKSPACE(bytes)                                                                                               \
	({                                                                                                                 \
		static _Thread_local void *place;                                                                              \
		workspace_get(&place, (bytes));                                                                                \
	})

/* Does the work of WORKSPACE(). *place is NULL the first time. */
__attribute__((alloc_size(2), returns_nonnull, noinline)) void *workspace_get(void **place, size_t bytes);

#endif
