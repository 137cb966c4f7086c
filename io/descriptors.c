/* descriptors.c - the limit of open descriptors, descriptor tables of single threads (Linux), and processors. */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif

#include "io/io.h"

uint64_t io_raise_descriptor_limit(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == -1) return 0;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* if it fails, the limit is as before */
	return getrlimit(RLIMIT_NOFILE, &limit) == -1 ? 0 : limit.rlim_cur;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Descriptors that may be open have lower numbers, since few are opened before; the limit may be a thousand million. */
enum { NUMBERS_MAX = 1 << 16 };

/* Closes the descriptors from first to last that are open. */
static void close_all(unsigned first, unsigned last) {
#ifdef __linux__
	if (syscall(SYS_close_range, first, last, 0) == 0) return; /* Linux 5.9; musl has no function for it */
#endif
	for (unsigned fd = first; fd <= last && fd < NUMBERS_MAX; fd++) (void)close((int)fd);
}

void io_close_others(int *keep, unsigned count) {
	if (count) qsort(keep, count, sizeof *keep, by_number);
	unsigned from = STDERR_FILENO + 1;
	for (unsigned i = 0; i < count; i++) {
		unsigned fd = (unsigned)keep[i];
		if (fd > from) close_all(from, fd - 1);
		if (fd >= from) from = fd + 1;
	}
	close_all(from, ~0U);
}

#ifdef __linux__

/* ThreadSanitizer assumes that a number stands for the same descriptor in every thread; with it, threads share one
 * table, as they do on other systems. */
#ifdef __SANITIZE_THREAD__
static const bool one_table = true;
#else
static const bool one_table = false;
#endif

bool io_private_descriptors(int *keep, unsigned count) {
	if (one_table || unshare(CLONE_FILES) == -1) return false;
	io_close_others(keep, count);
	return true;
}

#else

bool io_private_descriptors(int *keep, unsigned count) {
	(void)keep, (void)count;
	return false;
}

#endif

unsigned io_processors(void) {
#ifdef __linux__
	cpu_set_t set; /* of up to 1,024: on a larger machine the call fails */
	if (sched_getaffinity(0, sizeof set, &set) == 0) return (unsigned)CPU_COUNT(&set);
#endif
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (unsigned)online : 1;
}
