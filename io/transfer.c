/* transfer.c - the system calls that move bytes, and the bookkeeping of readiness around them. The calls for sockets
 * are tried first: they cost less than read(2) and write(2), by 2 % of a small request. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/sendfile.h"

ssize_t io_exhausted(io_loop *loop, int fd, enum io_direction d, ssize_t result) {
	struct io_entry *e = &loop->entry[fd];
	bool watched = io_not_ready(loop, fd, d) == 0;
	if (result == -1) {
		if (watched) errno = EAGAIN;
	} else if (!watched) { /* the next call reports the error */
		e->can |= (uint8_t)(1 << d);
	}
	return result;
}

/* Notes readiness, and returns the result of a call. On a stream socket a short transfer proves that the kernel's
 * buffer is empty (or full), so that the next call would fail with EAGAIN; see epoll(7). */
static ssize_t note(io_loop *loop, int fd, enum io_direction d, ssize_t result, size_t length) {
	if (result > 0 && (size_t)result == length) return result;
	if (result == 0 || (result == -1 && errno != EAGAIN && errno != EWOULDBLOCK)) return result;
	struct io_entry *e = &loop->entry[fd];
	if (result > 0 && d == IO_READ && (e->again || e->hangup)) {
		e->again = false;
		return result;
	}
	return io_exhausted(loop, fd, d, result);
}

ssize_t io_tryread(io_loop *loop, int fd, void *buffer, size_t length) {
	ssize_t r;
	if (loop->mechanism->received && loop->mechanism->received(loop, fd, buffer, length, &r)) return r;
	do r = recv(fd, buffer, length, 0);
	while (r == -1 && errno == EINTR);
	if (r == -1 && errno == ENOTSOCK) r = read(fd, buffer, length);
	return note(loop, fd, IO_READ, r, length);
}

static ssize_t send_one(io_loop *loop, int fd, const void *buffer, size_t length, int flags) {
	ssize_t r;
	do r = send(fd, buffer, length, flags);
	while (r == -1 && errno == EINTR);
	if (r == -1 && errno == ENOTSOCK) r = write(fd, buffer, length);
	return note(loop, fd, IO_WRITE, r, length);
}

ssize_t io_trywrite(io_loop *loop, int fd, const void *buffer, size_t length) {
	return send_one(loop, fd, buffer, length, MSG_NOSIGNAL);
}

ssize_t io_trywritev(io_loop *loop, int fd, const struct iovec *part, int parts, enum io_rest rest) {
	const int flags = MSG_NOSIGNAL | (rest == IO_MORE ? IO_MSG_MORE : 0);
	if (parts == 1) return send_one(loop, fd, part->iov_base, part->iov_len, flags);
	struct msghdr message = {.msg_iov = (struct iovec *)part, .msg_iovlen = (size_t)parts};
	size_t length = 0;
	for (int i = 0; i < parts; i++) length += part[i].iov_len;
	ssize_t r;
	do r = sendmsg(fd, &message, flags);
	while (r == -1 && errno == EINTR);
	if (r == -1 && errno == ENOTSOCK) r = writev(fd, part, parts);
	return note(loop, fd, IO_WRITE, r, length);
}

static int accept_nonblocking(int fd, struct sockaddr *peer, socklen_t *peer_length) {
#ifdef __APPLE__ /* it has no accept4(2) */
	int s = accept(fd, peer, peer_length);
	if (s != -1 && (fcntl(s, F_SETFL, O_NONBLOCK) == -1 || fcntl(s, F_SETFD, FD_CLOEXEC) == -1)) {
		int error = errno;
		close(s);
		errno = error;
		return -1;
	}
	return s;
#elif defined(__NetBSD__)
	return paccept(fd, peer, peer_length, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
	return accept4(fd, peer, peer_length, SOCK_NONBLOCK | SOCK_CLOEXEC);
#endif
}

int io_accept(io_loop *loop, int fd, struct sockaddr *peer, socklen_t *peer_length) {
	int s;
	loop->entry[fd].shared = true;
	do s = accept_nonblocking(fd, peer, peer_length);
	while (s == -1 && (errno == EINTR || errno == ECONNABORTED));
	return s == -1 ? (int)note(loop, fd, IO_READ, s, 0) : s;
}

ssize_t io_sendfile(io_loop *loop, int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length) {
	bool full = false;
	ssize_t r = io_platform_sendfile(fd, head, parts, file, offset, length, &full);
	return full ? io_exhausted(loop, fd, IO_WRITE, r) : r;
}
