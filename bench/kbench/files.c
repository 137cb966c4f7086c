/* files.c - measures opening, mapping and touching many small files that are in memory; all of them stay open. After
 * manymapbench of Felix von Leitner's "Benchmarking BSD and Linux" (2003). */
#include <errno.h>
#include <fcntl.h>
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
	const char *path = run_directory(run);
	if (!path) return -1;
	int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top == -1) return run_stop(run, "open", 0);
	for (unsigned n = 0; n < run->count; n++)
		if (make_file(top, n) == -1) return run_stop(run, "write", n);
	run_begin();
	return open_all(run, top);
}

const struct benchmark benchmark_files = {
	.name = "files",
	.summary = "opening, mapping and touching small files against those open",
	.how = "Files of 1000 bytes, 100 to a directory, in memory; all stay open and mapped.",
	.n = "files open",
	.columns = {"open_ns", "mmap_ns", "touch_ns"},
	.count = 10000,
	.options = KBENCH_OPTION_DIRECTORY,
	.alone = true,
	.measure = measure,
};
