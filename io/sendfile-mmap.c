/* sendfile-mmap.c - for systems without sendfile(2): the file is mapped, a window at a time, and written from there.
 * Only the kernel reads the mapping, so that a file that shrinks meanwhile makes writev(2) fail with EFAULT and never
 * raises SIGBUS. fstat(2) right before it keeps out the zeros behind the end of the file. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/internal.h"

enum { WINDOW = 256 * 1024 };

ssize_t io_platform_sendfile(int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length,
							 bool *full) {
	struct stat st;
	if (parts > IO_HEAD_PARTS) {
		errno = EINVAL;
		return -1;
	}
	if (fstat(file, &st) == -1) return -1;
	off_t rest = st.st_size > offset ? st.st_size - offset : 0;
	if (length > WINDOW) length = WINDOW;
	if ((off_t)length > rest) length = (size_t)rest;

	struct iovec part[IO_HEAD_PARTS + 1];
	if (parts) memcpy(part, head, (size_t)parts * sizeof *part);
	size_t head_length = 0;
	for (int i = 0; i < parts; i++) head_length += head[i].iov_len;
	size_t total = head_length + length;
	if (!total) return 0;

	char *window = MAP_FAILED;
	size_t skipped = 0;
	if (length) {
		skipped = (size_t)(offset % sysconf(_SC_PAGESIZE));
		window = mmap(NULL, length + skipped, PROT_READ, MAP_SHARED, file, offset - (off_t)skipped);
		if (window == MAP_FAILED) return -1;
		part[parts++] = (struct iovec){.iov_base = window + skipped, .iov_len = length};
	}
	ssize_t r;
	do r = writev(fd, part, parts);
	while (r == -1 && errno == EINTR);
	int error = errno;
	if (window != MAP_FAILED) munmap(window, length + skipped);
	*full = r == -1 ? error == EAGAIN : (size_t)r < total;
	if (r == -1 && error == EFAULT && !head_length) return 0; /* the file now ends before offset */
	errno = error;
	return r;
}
