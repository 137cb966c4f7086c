/* sendfile-freebsd.c - sendfile(2) of FreeBSD: head and file in one call. */
#include <errno.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "io/internal.h"

ssize_t io_platform_sendfile(int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length,
							 bool *full) {
	struct sf_hdtr headers = {.headers = (struct iovec *)head, .hdr_cnt = parts};
	off_t sent = 0;
	/* length 0 would mean "to the end of the file"; no caller passes it */
	int r = sendfile(file, fd, offset, length, parts ? &headers : NULL, &sent, 0);
	if (r == -1 && errno == EAGAIN) *full = true;
	if (r == -1 && (errno == EAGAIN || errno == EINTR || errno == EBUSY) && sent > 0) return (ssize_t)sent;
	/* nothing was sent, and fd is still ready: try again */
	if (r == -1 && (errno == EINTR || errno == EBUSY)) errno = EAGAIN;
	return r == -1 ? -1 : (ssize_t)sent;
}
