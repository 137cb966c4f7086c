/* sendfile-macos.c - sendfile(2) of macOS: head and file in one call; the length counts both. */
#include <errno.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "io/internal.h"

ssize_t io_platform_sendfile(int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length,
							 bool *full) {
	struct sf_hdtr headers = {.headers = (struct iovec *)head, .hdr_cnt = parts};
	off_t sent = (off_t)length;
	for (int i = 0; i < parts; i++) sent += (off_t)head[i].iov_len;
	/* a length of 0 would mean "to the end of the file"; no caller passes it */
	int r = sendfile(file, fd, offset, &sent, parts ? &headers : NULL, 0);
	if (r == -1 && errno == EAGAIN) *full = true;
	if (r == -1 && (errno == EAGAIN || errno == EINTR) && sent > 0) return (ssize_t)sent;
	if (r == -1 && errno == EINTR) errno = EAGAIN; /* nothing was sent, and fd is still ready: try again */
	return r == -1 ? -1 : (ssize_t)sent;
}
