/* ask.h - one connection or request at a time, and how long each took: for the benchmarks that hold many connections.
 * The connections are descriptors of a loop, of which only the one in hand is waited for. */
#ifndef BENCH_ASK_H
#define BENCH_ASK_H

#include "bench/source.h"
#include "bench/target.h"
#include "io/io.h"

enum { ASK_TIMEOUT_S = 30 /* for a connection, and for each piece of an answer */ };

/* What ended it: the call and its errno; no call: nothing did. Functions that answer -1 fill it in; EPROTO: the answer
 * is not HTTP, or not a 200. */
struct ask_stop {
	const char *call;
	int error;
};

/* For other calls. Always -1. */
int ask_stopped(struct ask_stop *stop, const char *call);

/* From writing the rest of a request on, in ns. */
struct ask_times {
	int64_t first_byte, whole;
};

/* A new connection from the source of that number (if there are sources), which the caller closes with io_close(); and
 * the time until it stood. receive_buffer: bytes of it, 0: as the system has it. The descriptor, or -1. */
int ask_connect(io_loop *loop, const struct target *target, const struct sources *sources, uint32_t source,
				int receive_buffer, int64_t *connect_ns, struct ask_stop *stop);

/* 0, or -1. */
int ask_send(io_loop *loop, int fd, const char *bytes, size_t length, struct ask_stop *stop);

/* Sends the target's request but for the first `already` bytes of it, and reads the answer to its last byte. 0, or -1.
 */
int ask(io_loop *loop, int fd, const struct target *target, size_t already, struct ask_times *times,
		struct ask_stop *stop);

#endif
