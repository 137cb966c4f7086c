/* at_once.h - reads from files without waiting for a disk. */
#ifndef GATLING_IO_AT_ONCE_H
#define GATLING_IO_AT_ONCE_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#ifdef __linux__
#include <fcntl.h>
#include <sys/uio.h>
#endif

/* Keeps the kernel from reading ahead in an open file, until io_pread_at_once() has to wait for the disk anyway. Call
 * it before anything is read from the file. Otherwise the kernel marks a page of what it reads ahead, and the thread
 * that reaches this page, which may be a loop, starts the next read-ahead. If that is megabytes, it takes milliseconds.
 */
static inline void io_no_read_ahead(int file) {
#ifdef __linux__
	(void)posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
#else
	(void)file;
#endif
}

/* Starts to read a part of a file into memory, without waiting for it. */
static inline void io_start_reading(int file, off_t offset, off_t length) {
#ifdef __linux__
	enum { PIECE = 128 * 1024 }; /* bytes; POSIX_FADV_WILLNEED starts to read at least these at once */
	for (off_t end = offset + length; offset < end; offset += PIECE)
		(void)posix_fadvise(file, offset, end - offset < PIECE ? end - offset : PIECE, POSIX_FADV_WILLNEED);
#else
	(void)file, (void)offset, (void)length;
#endif
}

/* Does what pread(2) does, but fails with EAGAIN instead of waiting for a disk. If the system or the file system does
 * not offer this, or a sandbox forbids it, it waits. */
static inline ssize_t io_pread_at_once(int file, void *buffer, size_t length, off_t offset) {
#ifdef __linux__
	struct iovec part = {.iov_base = buffer, .iov_len = length};
	ssize_t n = preadv2(file, &part, 1, offset, RWF_NOWAIT);
	const bool offered = n != -1 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EPERM);
	if (offered) return n;
	(void)posix_fadvise(file, 0, 0, POSIX_FADV_NORMAL);
#endif
	return pread(file, buffer, length, offset);
}

#endif
