/* socket.h - sockets of a loop that connect to a target. Closing them is up to the caller, with io_close(). */
#ifndef BENCH_SOCKET_H
#define BENCH_SOCKET_H

#include <stdbool.h>

#include "bench/client/source.h"
#include "bench/client/target.h"
#include "io/io.h"

struct socket_options {
	bool datagrams;     /* UDP */
	bool no_delay;      /* without Nagle's algorithm */
	bool last_ack;      /* of TCP's handshake, the last packet waits for the request, which then acknowledges */
	int receive_buffer; /* its size in bytes; 0: the system's default */
	const struct sources *sources; /* where connections come from; NULL, or empty: the kernel chooses */
	uint32_t source;               /* the number of the address */
};

/* Makes a socket in non-blocking mode, and adds it to the loop with that cookie (io.h). Returns the descriptor, or -1
 * with errno, and then, unless call is NULL, the call that failed. EINVAL: the source is not an address of this
 * machine, since EADDRNOTAVAIL stands for a lack of ports. */
int socket_make(io_loop *loop, void *cookie, const struct target *target, const struct socket_options *options,
				const char **call);

/* Starts to connect. Returns 0, or -1 with errno. */
int socket_connect(int fd, const struct target *target);

/* Returns 0 if the connection is established, as it is at once on loopback, or -1 with errno. EAGAIN: not yet, the loop
 * says when the socket is writable (D. J. Bernstein, "Non-blocking BSD socket connections"). */
int socket_connected(io_loop *loop, int fd);

#endif
