/* files.c - opening, mapping and touching many small files that are in memory, all of which stay open. After
 * manymapbench of Felix von Leitner's "Benchmarking BSD and Linux" (2003). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"
#include "bench/machine.h"

enum { A_DIRECTORY = 100, FILE_BYTES = 1000 };

static int make_file(int top, unsigned n) {
	static const char content[FILE_BYTES];
	char name[32];
	snprintf(name, sizeof name, "%u", n / A_DIRECTORY);
	if (n % A_DIRECTORY == 0 && mkdirat(top, name, 0700) == -1) return -1;
	snprintf(name, sizeof name, "%u/%u.html", n / A_DIRECTORY, n);
	int fd = openat(top, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd == -1) return -1;
	ssize_t written = write(fd, content, sizeof content);
	return close(fd) == -1 || written != sizeof content ? -1 : 0;
}

static void remove_files(int top, unsigned count) {
	char name[32];
	for (unsigned n = 0; n < count; n++) {
		snprintf(name, sizeof name, "%u/%u.html", n / A_DIRECTORY, n);
		(void)unlinkat(top, name, 0);
		snprintf(name, sizeof name, "%u", n / A_DIRECTORY);
		if ((n + 1) % A_DIRECTORY == 0 || n + 1 == count) (void)unlinkat(top, name, AT_REMOVEDIR);
	}
}

static int open_all(struct run *run, int top) {
	for (unsigned n = 0; n < run->count; n++) {
		char name[32];
		snprintf(name, sizeof name, "%u/%u.html", n / A_DIRECTORY, n);
		int64_t start = machine_clock_ns();
		int fd = openat(top, name, O_RDONLY);
		int64_t opened = machine_clock_ns();
		if (fd == -1) return run_stop(run, "openat", n);
		const volatile char *at = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		int64_t mapped = machine_clock_ns();
		if (at == MAP_FAILED) return run_stop(run, "mmap", n);
		(void)*at;
		run_point(run, n, (int64_t[]){opened - start, mapped - opened, machine_clock_ns() - mapped});
	}
	return 0;
}

static int measure(struct run *run) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/kbench-XXXXXX", run->settings->directory);
	if (!mkdtemp(path)) return run_stop(run, run->settings->directory, 0);
	int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	if (top == -1) result = run_stop(run, "open", 0);
	unsigned made = 0;
	for (; made < run->count && result == 0; made++)
		if (make_file(top, made) == -1) result = run_stop(run, "write", made);
	run_begin();
	if (result == 0) result = open_all(run, top);
	run_end(run);
	if (top != -1) remove_files(top, made);
	(void)rmdir(path);
	return result;
}

const struct benchmark benchmark_files = {
	.name = "files",
	.summary = "opening, mapping and touching small files against those open",
	.how = "Files of 1000 bytes, 100 to a directory, in memory; all stay open and mapped.",
	.n = "files open",
	.columns = {"open_ns", "mmap_ns", "touch_ns"},
	.count = 10000,
	.options = KBENCH_OPTION_DIRECTORY,
	.measure = measure,
};
