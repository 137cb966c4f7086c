/* mmap.c - measures mapping every other page of a file, each by itself, since the kernel would merge neighbours into
 * one mapping; then touching each of them. After mmapbench of Felix von Leitner's "Benchmarking BSD and Linux" (2003).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"
#include "bench/machine.h"

enum { STRIDE = 2, BLOCK = 1 << 20 };

/* Makes a file of that length, without a name; it is then in memory. Returns its descriptor, or -1 with errno. */
static int make_file(const char *directory, off_t length) {
	static char block[BLOCK];
	char name[PATH_MAX];
	if (snprintf(name, sizeof name, "%s/kbench-XXXXXX", directory) >= (int)sizeof name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = mkstemp(name);
	if (fd == -1) return -1;
	(void)unlink(name);
	memset(block, 'x', sizeof block);
	for (off_t at = 0; at < length;) {
		size_t rest = length - at < BLOCK ? (size_t)(length - at) : BLOCK;
		ssize_t n = write(fd, block, rest);
		if (n == -1) return -1;
		at += n;
	}
	return fd;
}

static int measure(struct run *run) {
	long page = sysconf(_SC_PAGESIZE);
	int flags = run_kind(run, "private") ? MAP_PRIVATE : MAP_SHARED;
	char **mapped = run_memory(run, run->count, sizeof *mapped);
	int64_t *map_ns = run_memory(run, run->count, sizeof *map_ns);
	if (!mapped || !map_ns) return -1;
	int fd = make_file(run->settings->directory, (off_t)run->count * STRIDE * page);
	if (fd == -1) return run_stop(run, run->settings->directory, 0);
	unsigned count = 0, limit;
	if (namespace_read_numbers("/proc/sys/vm/max_map_count", &limit, 1)) run_landmark(run, limit, "vm.max_map_count");
	int error = 0;
	run_ends_itself(run); /* a point has no touch_ns until all pages are mapped */
	run_begin();
	for (; count < run->count && !error && !run_interrupted(run); count++) {
		int64_t before = machine_clock_ns();
		char *at = mmap(NULL, (size_t)page, PROT_READ, flags, fd, (off_t)count * STRIDE * page);
		map_ns[count] = machine_clock_ns() - before;
		mapped[count] = at;
		if (at == MAP_FAILED) error = errno;
	}
	if (error) count--;
	for (unsigned n = 0; n < count; n++) {
		int64_t before = machine_clock_ns();
		(void)*(volatile char *)mapped[n];
		run_point(run, n, (int64_t[]){map_ns[n], machine_clock_ns() - before});
	}
	errno = error;
	if (error) return run_stop(run, "mmap", count);
	return count < run->count ? run_fail(run, "interrupted") : 0;
}

const struct benchmark benchmark_mmap = {
	.name = "mmap",
	.summary = "mapping every other page of a file, then touching each",
	.how = "Each page is a mapping of its own; when all are there, a byte of each is read. The file is in memory.",
	.n = "pages mapped",
	.columns = {"mmap_ns", "touch_ns"},
	.kinds = {"shared", "private"},
	.count = 25000, /* of a file of 200 MB */
	.options = KBENCH_OPTION_DIRECTORY,
	.alone = true,
	.measure = measure,
};
