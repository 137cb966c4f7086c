/* window.h - parts of files that may be on another machine. No call of the loop may wait for such a file, which every
 * read does when its server is slow: threads read it into memory. */
#ifndef GATLING_IO_WINDOW_H
#define GATLING_IO_WINDOW_H

#include <sys/stat.h>

#include "io/task.h"

enum {
	IO_WINDOW = 256 * 1024,      /* bytes that a thread reads at a time for each file being sent; */
	IO_WINDOW_LEAST = 16 * 1024, /* if all windows of a loop would take IO_WINDOWS_MANY bytes, so few, */
	IO_WINDOWS_MANY = 16 << 20,  /* and none beyond IO_WINDOWS_MOST */
	IO_WINDOWS_MOST = 64 << 20,
	IO_WINDOW_TINY = 4096,            /* but this */
	IO_WINDOW_AHEAD = 2 * 1024 * 1024 /* bytes behind it that the kernel reads meanwhile */
};

/* What a thread reads, or has read, of a file that is being sent. */
struct io_window;

/* What is read of which file, to be sent to fd. */
struct io_window_read {
	int fd, file;
	off_t offset;
	size_t now;      /* bytes that are wanted, */
	uint64_t length; /* and bytes that will be */
};

/* Copies bytes into buffer. *window is that of the file being sent, NULL at first; it grows and goes with this.
 * Returns as pread(2), perhaps fewer bytes than there are. Returns -1 with EAGAIN while a thread reads them: fd is not
 * ready for writing until it has. Sets *now to fstat(2) of the file after the bytes were read. */
ssize_t io_window_read(io_loop *loop, io_tasks *readers, struct io_window **window, const struct io_window_read *read,
					   void *buffer, struct stat *now);

/* Frees a window, at once or when its thread is done with it; NULL is allowed. fd must still be open. The file may be
 * closed meanwhile: what is read then is thrown away. */
void io_window_free(struct io_window *window);

/* Returns the bytes that it takes. */
size_t io_window_memory(const struct io_window *window);

/* After a wake, and after io_tasks_stop(): hands out what these threads have read. */
void io_windows_collect(io_tasks *readers);

#endif
