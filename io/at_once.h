/* at_once.h - reads from files without waiting for a disk. */
#ifndef GATLING_IO_AT_ONCE_H
#define GATLING_IO_AT_ONCE_H

#include <errno.h>
#include <unistd.h>

#ifdef __linux__
#include <fcntl.h>
#include <sys/uio.h>
#endif

/* Keeps the kernel from reading ahead in an open file, until io_pread_at_once() finds that it would wait for the disk
 * anyway. To be called before anything is read from it: the kernel marks a page of what it has read ahead, and whoever
 * meets that mark has it read on, a loop too, which takes milliseconds where the read-ahead is set to megabytes. */
static inline void io_no_read_ahead(int file) {
#ifdef __linux__
	(void)posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
#else
	(void)file;
#endif
}

/* Starts to read a part of a file into memory, and does not wait for it. */
static inline void io_start_reading(int file, off_t offset, off_t length) {
#ifdef __linux__
	enum { PIECE = 128 * 1024 }; /* bytes that POSIX_FADV_WILLNEED is sure to start reading at once */
	for (off_t end = offset + length; offset < end; offset += PIECE)
		(void)posix_fadvise(file, offset, end - offset < PIECE ? end - offset : PIECE, POSIX_FADV_WILLNEED);
#else
	(void)file, (void)offset, (void)length;
#endif
}

/* Returns as pread(2), but -1 with EAGAIN instead of waiting for a disk. Where the system, or the file system, cannot
 * tell, it waits. */
static inline ssize_t io_pread_at_once(int file, void *buffer, size_t length, off_t offset) {
#ifdef __linux__
	struct iovec part = {.iov_base = buffer, .iov_len = length};
	ssize_t n = preadv2(file, &part, 1, offset, RWF_NOWAIT);
	if (n != -1 || errno != EOPNOTSUPP) return n;
	(void)posix_fadvise(file, 0, 0, POSIX_FADV_NORMAL);
#endif
	return pread(file, buffer, length, offset);
}

#endif
