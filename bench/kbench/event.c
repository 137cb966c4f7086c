/* event.c - measures one event as the number of idle, watched descriptors grows, with the mechanism that the program
 * was built with: from the start of the wait until the byte has been read and the descriptor is waited for again. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"
#include "bench/machine.h"
#include "bench/platform.h"
#include "io/io.h"

enum { WAIT_MS = 1000 };

/* Adopts a descriptor that has nothing to read, and waits for it. */
static int watch(io_loop *loop, int fd) {
	static char cookie;
	if (io_fd(loop, fd, &cookie) == -1) return -1;
	io_eagain_read(loop, fd);
	return io_wantread(loop, fd);
}

/* Writes a byte to writer, which arrives at fd. Returns how long the event took, or -1 with errno. */
static int64_t take_event(io_loop *loop, int writer, int fd) {
	char byte;
	if (io_wait(loop, 0) == -1 || write(writer, "", 1) != 1) return -1; /* applies changes that were deferred */
	int64_t before = machine_clock_ns();
	for (int ready = -1; ready != fd;) {
		if (io_wait(loop, WAIT_MS) == -1) return -1;
		ready = io_canread(loop);
		if (ready != -1) continue;
		errno = ETIMEDOUT;
		if (machine_clock_ns() - before > (int64_t)WAIT_MS * 1000000) return -1;
	}
	if (io_tryread(loop, fd, &byte, 1) != 1) return -1;
	(void)io_tryread(loop, fd, &byte, 1); /* it returns EAGAIN */
	return machine_clock_ns() - before;
}

/* Makes a pair of sockets and watches the first one. Returns 0, or -1 with errno. */
static int watch_pair(io_loop *loop, int pair[2]) {
	return platform_socketpair(pair) == -1 ? -1 : watch(loop, pair[0]);
}

static int measure_with(struct run *run, io_loop *loop) {
	int pair[2];
	bool first = run_kind(run, "first");
	if (watch_pair(loop, pair) == -1) return run_stop(run, "socketpair", 0);
	for (unsigned n = 0; n < run->count; n++) {
		int idle = n ? platform_socket(AF_INET, SOCK_DGRAM, true) : -1; /* for n = 0 there is none */
		if (n && idle == -1) return run_stop(run, "socket", n);
		if (n && watch(loop, idle) == -1) return run_stop(run, "io_wantread", n);
		if (!first) { /* added again, after all others */
			io_close(loop, pair[0]);
			close(pair[1]);
			if (watch_pair(loop, pair) == -1) return run_stop(run, "socketpair", n);
		}
		int64_t took = take_event(loop, pair[1], pair[0]);
		if (took == -1) return run_stop(run, "io_wait", n);
		run_point(run, n, &took);
	}
	return 0;
}

static int measure(struct run *run) {
	io_loop *loop = io_loop_new();
	if (!loop) return run_stop(run, "io_loop_new", 0);
	int result = measure_with(run, loop);
	io_loop_free(loop);
	return result;
}

const struct benchmark benchmark_event = {
	.name = "event",
	.summary = "one event against the descriptors watched and idle",
	.how = "From the start of the wait until the byte that has come is read and the next read has said that there is "
		   "no more; the socket is the one that was added last (or first).",
	.n = "idle descriptors",
	.columns = {"event_ns"},
	.kinds = {"last", "first"},
	.count = 15000,
	.measure = measure,
};
