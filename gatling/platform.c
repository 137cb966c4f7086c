/* platform.c - see platform.h. */
#include "gatling/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/openat2.h>
#include <sched.h>
#include <sys/syscall.h>

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* ThreadSanitizer takes a number for the same descriptor in every thread; it sees the shared table of the other
 * systems. */
#ifdef __SANITIZE_THREAD__
static const bool one_table = true;
#else
static const bool one_table = false;
#endif

bool platform_private_descriptors(int *keep, unsigned count) {
	if (one_table || unshare(CLONE_FILES) == -1) return false;
	qsort(keep, count, sizeof *keep, by_number);
	unsigned from = STDERR_FILENO + 1;
	for (unsigned i = 0; i < count; i++) {
		unsigned fd = (unsigned)keep[i];
		if (fd > from) (void)close_range(from, fd - 1, 0); /* at worst some stay open */
		if (fd >= from) from = fd + 1;
	}
	(void)close_range(from, ~0U, 0);
	return true;
}

int platform_open_beneath(int directory, const char *path, int flags) {
	struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int platform_cores(void) {
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == -1) return 1;
	return CPU_COUNT(&set);
}

#else

bool platform_private_descriptors(int *keep, unsigned count) {
	(void)keep, (void)count;
	return false;
}

int platform_open_beneath(int directory, const char *path, int flags) {
#ifdef O_RESOLVE_BENEATH
	int fd = openat(directory, path, flags | O_RESOLVE_BENEATH);
#ifdef ENOTCAPABLE
	if (fd == -1 && errno == ENOTCAPABLE) errno = EXDEV;
#endif
	return fd;
#else
	(void)directory, (void)path, (void)flags;
	errno = ENOSYS;
	return -1;
#endif
}

int platform_cores(void) {
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return cores > 0 ? (int)cores : 1;
}

#endif

bool platform_can_open_beneath(void) {
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (here == -1) return false;
	int fd = platform_open_beneath(here, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd != -1) close(fd);
	close(here);
	return fd != -1;
}
