/* socket.c - see socket.h. */
#include "bench/client/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "bench/platform.h"

/* Returns NULL, or the call that failed. */
static const char *prepare(int fd, const struct socket_options *o) {
	const int *buffer = &o->receive_buffer;
	if (o->no_delay) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
#ifdef TCP_QUICKACK
	if (o->last_ack) (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &(int){0}, sizeof(int));
#endif
	if (*buffer && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, buffer, sizeof *buffer) == -1) return "setsockopt";
	if (!o->sources || !o->sources->count || sources_bind(o->sources, o->source, fd) == 0) return NULL;
	if (errno == EADDRNOTAVAIL) errno = EINVAL;
	return "bind";
}

int socket_make(io_loop *loop, void *cookie, const struct target *t, const struct socket_options *o,
				const char **call) {
	const int fd = platform_socket(t->address.ss_family, o->datagrams ? SOCK_DGRAM : SOCK_STREAM, true);
	const char *failed = fd == -1 ? "socket" : prepare(fd, o);
	if (!failed && io_fd(loop, fd, cookie) == 0) return fd;
	if (!failed) errno = EMFILE;
	if (call) *call = failed ? failed : "table of descriptors";
	const int error = errno;
	if (fd != -1) close(fd);
	errno = error;
	return -1;
}

int socket_connect(int fd, const struct target *t) {
	const int result = connect(fd, (const struct sockaddr *)&t->address, t->address_length);
	return result == -1 && errno == EINPROGRESS ? 0 : result;
}

/* Returns the state of a connect(2): 0, EINPROGRESS or an error. */
static int state_of(int fd) {
	struct sockaddr_storage peer;
	int error = 0;
	socklen_t length = sizeof peer, error_length = sizeof error;
	if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0) return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length) == -1) return errno;
	return error ? error : EINPROGRESS;
}

int socket_connected(io_loop *loop, int fd) {
	errno = state_of(fd);
	if (errno == EINPROGRESS && io_eagain_write(loop, fd) == 0) errno = EAGAIN;
	return errno ? -1 : 0;
}
