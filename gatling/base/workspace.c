/* workspace.c - see workspace.h. */
#include "gatling/base/workspace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its value is the workspace of a thread, which is freed when that ends */

static _Thread_local char *start;
static _Thread_local size_t used;

static void unmap(void *workspace) { munmap(workspace, WORKSPACE_MAX); }

static void make_key(void) {
	if (pthread_key_create(&key, unmap) != 0) abort(); /* a process may have at least 128 keys */
}

int workspace_open(void) {
	if (start) return 0;
	void *map = mmap(NULL, WORKSPACE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
	if (map == MAP_FAILED) return -1;
#ifdef MADV_NOHUGEPAGE
	(void)madvise(map, WORKSPACE_MAX, MADV_NOHUGEPAGE); /* otherwise the first byte makes 2 MB resident */
#endif
	pthread_once(&once, make_key);
	if (pthread_setspecific(key, map) != 0) {
		unmap(map);
		errno = ENOMEM;
		return -1;
	}
	start = map;
	return 0;
}

void *workspace_get(void **place, size_t bytes) {
	if (*place) return *place;
	if (workspace_open() == -1 || bytes > WORKSPACE_MAX - used) abort();
	*place = start + used;
	used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return *place;
}
