/* socket.c - see socket.h. */
#include "bench/httpbench/transport/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

int socket_bind(int fd, const struct sources *sources, uint32_t number) {
	if (!sources->count || sources_bind(sources, number, fd) == 0) return 0;
	if (errno == EADDRNOTAVAIL) errno = EINVAL;
	return -1;
}

int socket_connect(int fd, const struct target *t, const struct socket_options *o) {
	if (o->no_delay) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
#ifdef TCP_QUICKACK
	if (o->last_ack) (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &(int){0}, sizeof(int));
#endif
	const int result = connect(fd, (const struct sockaddr *)&t->address, t->address_length);
	return result == -1 && errno == EINPROGRESS ? 0 : result;
}
