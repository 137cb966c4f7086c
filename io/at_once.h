/* at_once.h - reads from files without waiting for a disk. */
#ifndef GATLING_IO_AT_ONCE_H
#define GATLING_IO_AT_ONCE_H

#include <errno.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/uio.h>
#endif

/* Returns as pread(2), but -1 with EAGAIN instead of waiting for a disk. Where the system, or the file system, cannot
 * tell, it waits. */
static inline ssize_t io_pread_at_once(int file, void *buffer, size_t length, off_t offset) {
#ifdef __linux__
	struct iovec part = {.iov_base = buffer, .iov_len = length};
	ssize_t n = preadv2(file, &part, 1, offset, RWF_NOWAIT);
	if (n != -1 || errno != EOPNOTSUPP) return n;
#endif
	return pread(file, buffer, length, offset);
}

#endif
