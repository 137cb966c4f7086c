/* splice.c - bytes that go from one socket to another. On Linux they do not leave the kernel: splice(2) moves them
 * through a pipe. A loop needs only one pipe, since it is empty after each call. */
#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#include <linux/sock_diag.h>
#endif
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "io/mechanism.h"

#ifdef __linux__

enum { PIPE = 128 * 1024, REFUSED = -2 }; /* bytes: twice the default, which takes a quarter less time */

/* Returns whether this error of splice(2) says that these sockets, or the system, do not support it. */
static bool unsuited(int error) { return error == EINVAL || error == ENOSYS || error == EPERM; }

/* Opens the pipe, if it is not open. Returns whether it is. If the system forbids it, it is not tried again. */
static bool open_pipe(io_loop *loop) {
	if (loop->splice_read >= 0) return true;
	int end[2];
	if (loop->splice_read == REFUSED) return false;
	if (pipe2(end, O_NONBLOCK | O_CLOEXEC) == -1) {
		if (errno == ENOSYS || errno == EPERM) loop->splice_read = REFUSED;
		return false;
	}
	(void)fcntl(end[1], F_SETPIPE_SZ, PIPE);
	loop->splice_read = end[0];
	loop->splice_write = end[1];
	return true;
}

bool io_splices(io_loop *loop) {
	return !loop->mechanism->received && open_pipe(loop); /* which may have read bytes already */
}

/* Leaves an eighth of the buffer for what segments take besides their bytes. If TCP_NOTSENT_LOWAT limits the unsent
 * bytes, all queued bytes count as unsent. */
size_t io_room(int fd) {
	uint32_t memory[SK_MEMINFO_VARS] = {0}, unsent = 0;
	socklen_t memory_size = sizeof memory, unsent_size = sizeof unsent;
	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &memory_size) == -1 ||
		getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &unsent_size) == -1)
		return 0;
	const uint32_t queued = memory[SK_MEMINFO_WMEM_QUEUED], buffer = memory[SK_MEMINFO_SNDBUF] / 8 * 7,
				   limit = unsent && unsent < buffer ? unsent : buffer;
	return queued < limit ? limit - queued : 0;
}

static ssize_t move(int from, int to, size_t length) {
	ssize_t r;
	do r = splice(from, NULL, to, NULL, length, SPLICE_F_NONBLOCK);
	while (r == -1 && errno == EINTR);
	return r;
}

/* Reads the rest of the pipe. Returns whether all length bytes were there. */
static bool read_rest(int from, char *buffer, size_t length) {
	while (length) {
		ssize_t r = read(from, buffer, length);
		if (r <= 0 && errno != EINTR) return false;
		if (r > 0) buffer += r, length -= (size_t)r;
	}
	return true;
}

/* Does what io_splice() does, or returns false, with nothing done, if the kernel cannot. */
static bool splice_in_kernel(io_loop *loop, int from, int to, void *buffer, size_t length, size_t *sent,
							 ssize_t *result) {
	if (!io_splices(loop)) return false;
	*result = move(from, loop->splice_write, length);
	if (*result == -1 && unsuited(errno)) return false;
	if (*result == -1 && errno == EAGAIN && io_eagain_read(loop, from) == 0) errno = EAGAIN;
	if (*result <= 0) return true;
	const ssize_t moved = move(loop->splice_read, to, (size_t)*result);
	*sent = moved > 0 ? (size_t)moved : 0;
	if (read_rest(loop->splice_read, buffer, (size_t)*result - *sent)) return true;
	close(loop->splice_read); /* and the bytes in it are lost */
	close(loop->splice_write);
	loop->splice_read = loop->splice_write = -1;
	*result = -1;
	errno = EIO;
	return true;
}

#else

bool io_splices(io_loop *loop) {
	(void)loop;
	return false;
}

size_t io_room(int fd) {
	(void)fd;
	return 0;
}

static bool splice_in_kernel(io_loop *loop, int from, int to, void *buffer, size_t length, size_t *sent,
							 ssize_t *result) {
	(void)loop, (void)from, (void)to, (void)buffer, (void)length, (void)sent, (void)result;
	return false;
}

#endif

ssize_t io_splice(io_loop *loop, int from, int to, void *buffer, size_t length, size_t *sent) {
	ssize_t result;
	*sent = 0;
	if (splice_in_kernel(loop, from, to, buffer, length, sent, &result)) return result;
	result = io_tryread(loop, from, buffer, length);
	if (result <= 0) return result;
	const ssize_t written = io_trywrite(loop, to, buffer, (size_t)result);
	if (written <= 0) return result;
	*sent = (size_t)written;
	memmove(buffer, (char *)buffer + written, (size_t)(result - written));
	return result;
}
