/* accept.c - measures connect(2) and accept(2) on the loopback as the number of open connections grows. After the
 * benchmark with which OpenBSD answered "Benchmarking BSD and Linux" (2003). connect(2) returns when the kernel has
 * answered, long before the server's program knows. Another process accepts, so that each end has its own table of
 * descriptors; only one of the two runs at a time. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"
#include "bench/machine.h"
#include "bench/client/source.h"

static int listen_anywhere(int family, struct sockaddr_storage *address, socklen_t *length) {
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
	*address = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
	*length = family == AF_INET6 ? sizeof *v6 : sizeof *v4;
	if (family == AF_INET6) v6->sin6_addr = in6addr_loopback;
	else v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(family, SOCK_STREAM, 0);
	if (fd == -1 || bind(fd, (struct sockaddr *)address, *length) == -1 || listen(fd, INT_MAX) == -1 ||
		getsockname(fd, (struct sockaddr *)address, length) == -1)
		return -1;
	return fd;
}

/* The other process's reply to a byte. */
struct accepted {
	int64_t ns;
	int error; /* errno; 0: none */
};

__attribute__((noreturn)) static void accept_all(int listener, int parent) {
	for (char go; read(parent, &go, 1) == 1;) {
		int64_t before = machine_clock_ns();
		int fd = accept(listener, NULL, NULL);
		struct accepted reply = {.ns = machine_clock_ns() - before, .error = fd == -1 ? errno : 0};
		if (write(parent, &reply, sizeof reply) != sizeof reply) break;
	}
	_exit(0);
}

static int connect_all(struct run *run, const struct sockaddr *address, socklen_t length, int child) {
	struct sources sources = {0};
	unsigned first, last;
	if (run->settings->sources > 1) {
		(void)sources_parse(&sources, "127.0.1.0/24");
		sources.count = run->settings->sources;
	}
	/* connect(2) looks for an even port first (__inet_hash_connect()) */
	if (namespace_ports(&first, &last) == 0)
		run_landmark(run, (last - first + 1) / 2 * run->settings->sources, "even ports");
	for (unsigned n = 0; n < run->count; n++) {
		struct accepted reply;
		int fd = socket(address->sa_family, SOCK_STREAM, 0);
		if (fd == -1) return run_stop(run, "socket", n);
		if (sources.count && sources_bind(&sources, n, fd) == -1) return run_stop(run, "bind", n);
		int64_t before = machine_clock_ns();
		int result = connect(fd, address, length);
		int64_t connected = machine_clock_ns();
		if (result == -1) return run_stop(run, "connect", n);
		if (write(child, "", 1) != 1 || read(child, &reply, sizeof reply) != sizeof reply)
			return run_stop(run, "read", n);
		errno = reply.error;
		if (errno) return run_stop(run, "accept", n);
		run_point(run, n, (int64_t[]){connected - before, reply.ns});
	}
	return 0;
}

static int measure(struct run *run) {
	struct sockaddr_storage address;
	socklen_t length;
	int pair[2], listener = listen_anywhere(run->settings->family, &address, &length);
	if (listener == -1) return run_stop(run, "listen", 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1) return run_stop(run, "socketpair", 0);
	pid_t child = fork();
	if (child == -1) return run_stop(run, "fork", 0);
	if (child == 0) {
		run_child();
		close(pair[0]);
		accept_all(listener, pair[1]);
	}
	close(pair[1]);
	close(listener);
	int result = connect_all(run, (struct sockaddr *)&address, length, pair[0]);
	run_end(run); /* all connections are now closed at once, which overflows queues */
	close(pair[0]);
	waitpid(child, NULL, 0);
	return result;
}

const struct benchmark benchmark_accept = {
	.name = "accept",
	.summary = "connect(2) and accept(2) against the connections that are open",
	.how = "On the loopback; another process accepts each connection when connect(2) has returned.",
	.n = "connections open",
	.columns = {"connect_ns", "accept_ns"},
	.count = 15000,
	.options = KBENCH_OPTION_FAMILY | KBENCH_OPTION_SOURCES | KBENCH_OPTION_PORTS,
	.network = true,
	.measure = measure,
};
