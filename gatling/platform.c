/* platform.c - see platform.h. */
#include "gatling/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/openat2.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/syscall.h>

/* at a path with ".." while somebody moves directories: openat2(2) says EAGAIN */
enum { OPEN_ATTEMPTS = 8 };

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* ThreadSanitizer takes a number for the same descriptor in every thread; it sees the shared table of the other
 * systems. */
#ifdef __SANITIZE_THREAD__
static const bool one_table = true;
#else
static const bool one_table = false;
#endif

/* The descriptors from first to last; what is not open does not matter. */
static void close_all(unsigned first, unsigned last) {
	if (close_range(first, last, 0) == 0) return;
	long most = sysconf(_SC_OPEN_MAX); /* Linux before 5.9 */
	for (unsigned fd = first; fd <= last && (long)fd < most; fd++) (void)close((int)fd);
}

bool platform_private_descriptors(int *keep, unsigned count) {
	if (one_table || unshare(CLONE_FILES) == -1) return false;
	qsort(keep, count, sizeof *keep, by_number);
	unsigned from = STDERR_FILENO + 1;
	for (unsigned i = 0; i < count; i++) {
		unsigned fd = (unsigned)keep[i];
		if (fd > from) close_all(from, fd - 1);
		if (fd >= from) from = fd + 1;
	}
	close_all(from, ~0U);
	return true;
}

int platform_open_beneath(int directory, const char *path, int flags) {
	struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long fd;
	int attempts = 0;
	do fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
	while (fd == -1 && errno == EAGAIN && ++attempts < OPEN_ATTEMPTS);
	return (int)fd;
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

long platform_send_queue(int fd) {
	int bytes;
#if defined(__linux__)
	return ioctl(fd, SIOCOUTQ, &bytes) == -1 ? -1 : bytes;
#elif defined(SO_NWRITE)
	socklen_t length = sizeof bytes;
	return getsockopt(fd, SOL_SOCKET, SO_NWRITE, &bytes, &length) == -1 ? -1 : bytes;
#elif defined(FIONWRITE)
	return ioctl(fd, FIONWRITE, &bytes) == -1 ? -1 : bytes;
#else
	(void)fd, (void)bytes;
	return -1;
#endif
}

bool platform_can_open_beneath(void) {
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (here == -1) return false;
	int fd = platform_open_beneath(here, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd != -1) close(fd);
	close(here);
	return fd != -1;
}
