/* socket.c - measures socket(2) as the number of open sockets grows. Like bind.c, after bindbench of Felix von
 * Leitner's "Benchmarking BSD and Linux" (2003). */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/kbench/descriptors.h"
#include "bench/machine.h"

static int measure(struct run *run) {
	int type = run_kind(run, "udp") ? SOCK_DGRAM : SOCK_STREAM;
	int family = run_kind(run, "unix") ? AF_UNIX : run->settings->family;
	int *fd = run_memory(run, run->count, sizeof *fd);
	if (!fd) return -1;
	for (unsigned n = 0; n < run->count; n++) {
		if (n > DESCRIPTORS_HOLE_FROM && descriptors_renew(&fd[DESCRIPTORS_HOLE], family, type) == -1)
			return run_stop(run, "socket", n);
		int64_t before = machine_clock_ns();
		fd[n] = socket(family, type, 0);
		int64_t took = machine_clock_ns() - before;
		if (fd[n] == -1) return run_stop(run, "socket", n);
		run_point(run, n, &took);
	}
	return 0;
}

const struct benchmark benchmark_socket = {
	.name = "socket",
	.summary = "socket(2) against the sockets that are open",
	.how = "Before each call a low descriptor is freed and taken again, so that the search for the lowest free "
		   "number has a way to go.",
	.n = "sockets open",
	.columns = {"socket_ns"},
	.kinds = {"tcp", "udp", "unix"},
	.count = 15000,
	.options = KBENCH_OPTION_FAMILY,
	.alone = true,
	.measure = measure,
};
