/* ask.c - see ask.h. */
#include "bench/connbench/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/client/response.h"
#include "bench/client/socket.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/platform.h"

enum { INPUT_MAX = 256 * 1024 /* more than RESPONSE_HEAD_MAX */ };

int ask_stopped(struct ask_stop *stop, const char *call) {
	*stop = (struct ask_stop){.call = call, .error = errno};
	return -1;
}

const char *ask_why(const struct ask_stop *stop) {
	static char text[64];
	if (stop->error != EPROTO) return strerror(stop->error);
	if (!stop->status) return "the answer is not HTTP";
	snprintf(text, sizeof text, "the status of the answer is %u, not 200", stop->status);
	return text;
}

/* A signal that comes just before a wait does not end it: it is noticed after so long. */
enum { LOOK_MS = 500 };

/* Waits until fd is ready; events of other descriptors are ignored. Returns 0, or -1 with errno (EINTR: the run was
 * interrupted). */
static int await(io_loop *loop, int fd) {
	io_timeout(loop, fd, machine_clock_ns() / 1000000 + ASK_TIMEOUT_S * 1000);
	while (true) {
		if (io_wait(loop, LOOK_MS) == -1) return -1;
		bool ready = false;
		for (int other; (other = io_canread(loop)) != -1;) ready |= other == fd;
		for (int other; (other = io_canwrite(loop)) != -1;) ready |= other == fd;
		if (ready) break;
		if (interrupt_came) {
			errno = EINTR;
			return -1;
		}
		if (io_timedout(loop) != fd) continue;
		errno = ETIMEDOUT;
		return -1;
	}
	io_timeout(loop, fd, 0);
	return 0;
}

static int await_read(io_loop *loop, int fd) {
	int result = io_wantread(loop, fd) == -1 ? -1 : await(loop, fd);
	io_dontwantread(loop, fd);
	return result;
}

static int await_write(io_loop *loop, int fd) {
	int result = io_wantwrite(loop, fd) == -1 ? -1 : await(loop, fd);
	io_dontwantwrite(loop, fd);
	return result;
}

static int connect_timed(io_loop *loop, int fd, const struct target *target, int64_t *connect_ns,
						 struct ask_stop *stop) {
	int64_t before = machine_clock_ns();
	int result = socket_connect(fd, target);
	int64_t after = machine_clock_ns();
	if (result == 0)
		while ((result = socket_connected(loop, fd)) == -1 && errno == EAGAIN && await_write(loop, fd) == 0)
			after = machine_clock_ns();
	*connect_ns = after - before;
	return result == -1 ? ask_stopped(stop, "connect") : 0;
}

int ask_connect(io_loop *loop, const struct target *target, const struct sources *sources, uint32_t source,
				int receive_buffer, int64_t *connect_ns, struct ask_stop *stop) {
	const struct socket_options options = {.sources = sources, .source = source, .receive_buffer = receive_buffer};
	const char *call;
	const int fd = socket_make(loop, stop, target, &options, &call);
	if (fd == -1) return ask_stopped(stop, call);
	if (connect_timed(loop, fd, target, connect_ns, stop) == 0) return fd;
	io_close(loop, fd);
	return -1;
}

int ask_send(io_loop *loop, int fd, const char *bytes, size_t length, struct ask_stop *stop) {
	while (length) {
		ssize_t n = io_trywrite(loop, fd, bytes, length);
		if (n == -1 && errno == EAGAIN && await_write(loop, fd) == 0) continue;
		if (n == -1) return ask_stopped(stop, "write");
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

/* Waits for input and reads it. Returns what read(2) does. */
static ssize_t receive(io_loop *loop, int fd, char *buffer, size_t length) {
	ssize_t n;
	do n = io_tryread(loop, fd, buffer, length);
	while (n == -1 && errno == EAGAIN && await_read(loop, fd) == 0);
	return n;
}

static int read_answer(io_loop *loop, int fd, bool bodiless, int64_t sent_ns, struct ask_times *times,
					   struct ask_stop *stop) {
	static const struct response_expected any = {0};
	static char input[INPUT_MAX];
	struct response r = {0};
	size_t have = 0;
	times->first_byte = 0;
	while (!response_complete(&r)) {
		ssize_t n = receive(loop, fd, input + have, sizeof input - have);
		if (n == 0 && response_ends_by_close(&r)) break;
		if (n == 0) errno = ECONNRESET;
		if (n <= 0) return ask_stopped(stop, "read");
		if (!times->first_byte) times->first_byte = machine_clock_ns() - sent_ns;
		have += (size_t)n;
		for (int used = 1; have && used > 0 && !response_complete(&r); have -= (size_t)used) {
			used = r.status ? response_content(&r, input, have, &any) : response_head(&r, input, have, bodiless);
			if (used == -1) {
				errno = EPROTO;
				return ask_stopped(stop, "request");
			}
			memmove(input, input + used, have - (size_t)used);
		}
	}
	times->whole = machine_clock_ns() - sent_ns;
	if (r.status == 200) return 0;
	*stop = (struct ask_stop){.call = "request", .error = EPROTO, .status = r.status};
	return -1;
}

int ask(io_loop *loop, int fd, const struct target *target, size_t already, struct ask_times *times,
		struct ask_stop *stop) {
	int64_t sent_ns = machine_clock_ns();
	if (ask_send(loop, fd, target->request.at + already, target->request.length - already, stop) == -1) return -1;
	return read_answer(loop, fd, target->bodiless, sent_ns, times, stop);
}

int ask_fork(void (*work)(int parent, const void *argument), const void *argument) {
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1) return -1;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		close(pair[0]);
		work(pair[1], argument);
	}
	close(pair[1]);
	if (child != -1) return pair[0];
	int error = errno;
	close(pair[0]);
	errno = error;
	return -1;
}
