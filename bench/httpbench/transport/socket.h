/* socket.h - connects sockets to a target. */
#ifndef BENCH_SOCKET_H
#define BENCH_SOCKET_H

#include <stdbool.h>

#include "bench/source.h"
#include "bench/target.h"

struct socket_options {
	bool no_delay; /* without Nagle's algorithm */
	bool last_ack; /* of TCP's handshake, the last packet waits for the request, which then acknowledges */
};

/* Binds a socket to the address with that number, if there are any. Returns 0, or -1 with errno: EINVAL if it is not an
 * address of this machine, since EADDRNOTAVAIL stands for a lack of ports. */
int socket_bind(int fd, const struct sources *sources, uint32_t number);

/* Starts to connect a non-blocking socket of TCP or UDP, or a unix socket. Returns 0, or -1 with errno. */
int socket_connect(int fd, const struct target *target, const struct socket_options *options);

#endif
