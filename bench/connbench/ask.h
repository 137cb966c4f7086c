/* ask.h - opens connections and sends requests, one at a time, and times them, for benchmarks that hold many
 * connections. Connections are descriptors of a loop; a call waits only for its own. */
#ifndef BENCH_ASK_H
#define BENCH_ASK_H

#include "bench/client/source.h"
#include "bench/client/target.h"
#include "io/io.h"

enum { ASK_TIMEOUT_S = 30 /* for a connection, and for each part of a response */ };

/* The call that failed, and its errno; call is NULL if none did. Functions that return -1 fill it in. EPROTO: the
 * response is not HTTP, or its status is not 200. */
struct ask_stop {
	const char *call;
	int error;
	unsigned status; /* of a response that is not 200; 0: the response is not HTTP */
};

/* Fills stop in from errno, for calls outside this file. Returns -1. */
int ask_stopped(struct ask_stop *stop, const char *call);

/* Returns the reason in words, valid until the next call. */
const char *ask_why(const struct ask_stop *stop);

/* Times in ns, since the rest of the request was written. */
struct ask_times {
	int64_t first_byte, whole;
};

/* Opens a connection and stores how long it took. If there are sources, it comes from the one with the number source.
 * receive_buffer: its size in bytes; 0: the system's default. Returns the descriptor, which the caller closes with
 * io_close(), or -1. */
int ask_connect(io_loop *loop, const struct target *target, const struct sources *sources, uint32_t source,
				int receive_buffer, int64_t *connect_ns, struct ask_stop *stop);

/* Sends bytes. Returns 0 or -1. */
int ask_send(io_loop *loop, int fd, const char *bytes, size_t length, struct ask_stop *stop);

/* Sends the target's request without its first `already` bytes, and reads the whole response. Returns 0 or -1. */
int ask(io_loop *loop, int fd, const struct target *target, size_t already, struct ask_times *times,
		struct ask_stop *stop);

/* Starts a process that calls work() with one end of a socket pair; work() does not return. Returns the other end, or
 * -1 with errno. */
int ask_fork(void (*work)(int parent, const void *argument), const void *argument);

#endif
