/* bind.c - measures socket(2), and bind(2) to a port that the kernel chooses, as the number of bound sockets grows.
 * After bindbench of Felix von Leitner's "Benchmarking BSD and Linux" (2003). */
#include <netinet/in.h>
#include <stdlib.h>

#include "bench/kbench/descriptors.h"
#include "bench/machine.h"

static int bind_any(int fd, int family) {
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
	return family == AF_INET6 ? bind(fd, (struct sockaddr *)&any6, sizeof any6)
							  : bind(fd, (struct sockaddr *)&any, sizeof any);
}

static int measure(struct run *run) {
	int family = run->settings->family, reuse = run_kind(run, "reuse");
	unsigned first, last;
	int *fd = run_memory(run, run->count, sizeof *fd);
	if (!fd) return -1;
	if (namespace_ports(&first, &last) == 0) {
		unsigned ports = last - first + 1;
		/* bind(2) looks for an odd port first; with SO_REUSEADDR, it does so in one half of the range first
		 * (inet_csk_find_open_port()). When none is left, each call still searches that part. */
		run_landmark(run, ports / (reuse ? 4 : 2), reuse ? "odd ports of half of the range" : "odd ports");
		run_landmark(run, ports, "all ports");
	}
	for (unsigned n = 0; n < run->count; n++) {
		if (n > DESCRIPTORS_HOLE_FROM && descriptors_renew(&fd[DESCRIPTORS_HOLE], family, SOCK_STREAM) == -1)
			return run_stop(run, "socket", n);
		int64_t start = machine_clock_ns();
		fd[n] = socket(family, SOCK_STREAM, 0);
		int64_t made = machine_clock_ns();
		if (fd[n] == -1) return run_stop(run, "socket", n);
		if (reuse && setsockopt(fd[n], SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) == -1)
			return run_stop(run, "setsockopt", n);
		int64_t unbound = machine_clock_ns();
		int result = bind_any(fd[n], family);
		int64_t bound = machine_clock_ns();
		if (result == -1) return run_stop(run, "bind", n);
		run_point(run, n, (int64_t[]){made - start, bound - unbound});
	}
	return 0;
}

const struct benchmark benchmark_bind = {
	.name = "bind",
	.summary = "socket(2) and bind(2) to port 0 against the sockets that are bound",
	.how = "The kernel chooses the ports; before each call a low descriptor is freed and taken again.",
	.n = "sockets bound",
	.columns = {"socket_ns", "bind_ns"},
	.kinds = {"plain", "reuse"},
	.count = 19000,
	.options = KBENCH_OPTION_FAMILY | KBENCH_OPTION_PORTS,
	.network = true,
	.alone = true,
	.measure = measure,
};
