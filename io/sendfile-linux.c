/* sendfile-linux.c - sendfile(2) of Linux; with MSG_MORE the memory before the file goes into its first segment. The
 * socket refers to the pages of the file until they are acknowledged or, on the same machine, read. So a write to the
 * file may still change bytes under way, and a truncation within a page turns the rest of it to zeros. iob.c copies
 * what must not change. */
#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "io/internal.h"

static ssize_t send_head(int fd, const struct iovec *head, int parts, size_t *length) {
	*length = 0;
	for (int i = 0; i < parts; i++) *length += head[i].iov_len;
	if (!*length) return 0;
	struct msghdr message = {.msg_iov = (struct iovec *)head, .msg_iovlen = (size_t)parts};
	ssize_t r;
	do r = sendmsg(fd, &message, MSG_MORE | MSG_NOSIGNAL);
	while (r == -1 && errno == EINTR);
	return r;
}

/* Copies bytes of the file, if a sandbox forbids sendfile(2), or the file system has no part for it. */
static ssize_t send_copy(int fd, int file, off_t offset, size_t length) {
	char piece[64 * 1024];
	ssize_t r, n = pread(file, piece, length < sizeof piece ? length : sizeof piece, offset);
	if (n <= 0) return n;
	do r = send(fd, piece, (size_t)n, MSG_NOSIGNAL);
	while (r == -1 && errno == EINTR);
	return r;
}

ssize_t io_platform_sendfile(int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length,
							 bool *full) {
	size_t head_length;
	ssize_t head_sent = send_head(fd, head, parts, &head_length);
	if (head_sent == -1 || (size_t)head_sent < head_length) {
		*full = head_sent >= 0 || errno == EAGAIN;
		return head_sent;
	}
	ssize_t r;
	do r = sendfile(fd, file, &offset, length);
	while (r == -1 && errno == EINTR);
	if (r == -1 && (errno == ENOSYS || errno == EPERM || errno == EINVAL)) r = send_copy(fd, file, offset, length);
	if (r == -1 && errno == EAGAIN) {
		*full = true;
		if (head_sent) return head_sent;
	}
	/* after the head was sent, an error is left for the next call, which meets it again */
	return r == -1 ? (head_sent ? head_sent : -1) : head_sent + r;
}
