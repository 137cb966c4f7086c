/* ask.h - opens one connection or sends one request at a time and times it, for benchmarks that hold many connections.
 * Connections are descriptors of a loop; a call waits for its own alone. */
#ifndef BENCH_ASK_H
#define BENCH_ASK_H

#include "bench/source.h"
#include "bench/target.h"
#include "io/io.h"

enum { ASK_TIMEOUT_S = 30 /* for a connection, and for each piece of an answer */ };

/* The call that failed and its errno; call is NULL if none failed. Functions that return -1 fill it in. EPROTO: the
 * answer is not HTTP, or its status is another than 200. */
struct ask_stop {
	const char *call;
	int error;
	unsigned status; /* the other one; 0: the answer is not HTTP */
};

/* Fills it in from errno, for other calls. Returns -1. */
int ask_stopped(struct ask_stop *stop, const char *call);

/* Says why in words, which last until the next call. */
const char *ask_why(const struct ask_stop *stop);

/* In ns, from the moment the rest of a request is written. */
struct ask_times {
	int64_t first_byte, whole;
};

/* Opens a connection, from the source of that number if there are sources, and stores the time it took. receive_buffer:
 * its size in bytes; 0: the system's default. Returns the descriptor, which the caller closes with io_close(), or -1.
 */
int ask_connect(io_loop *loop, const struct target *target, const struct sources *sources, uint32_t source,
				int receive_buffer, int64_t *connect_ns, struct ask_stop *stop);

/* Sends bytes. Returns 0, or -1. */
int ask_send(io_loop *loop, int fd, const char *bytes, size_t length, struct ask_stop *stop);

/* Sends the target's request without its first `already` bytes and reads the whole answer. Returns 0, or -1. */
int ask(io_loop *loop, int fd, const struct target *target, size_t already, struct ask_times *times,
		struct ask_stop *stop);

/* Starts a process that calls work() with its end of a socket pair; work() does not return. Returns this end, or -1
 * with errno. */
int ask_fork(void (*work)(int parent, const void *argument), const void *argument);

#endif
