/* reader.h - a thread beside the loop that reads parts of files into the page cache, so that the loop does not wait for
 * a disk when it sends them. Internal to io/. */
#ifndef GATLING_IO_READER_H
#define GATLING_IO_READER_H

#include "io/internal.h"

/* Of length bytes of file from offset on, the first `now` bytes are to be sent to fd. Returns whether they are in
 * memory; this is tested for the last one, and for the first unless the file begins there. If not, the thread reads a
 * window of up to IO_READ_WINDOW bytes from offset on, and fd is not ready for writing until it has. After that the
 * next call for this offset returns true, whether or not the read succeeded, unless fd had to wait for another read.
 * When less than half of a window is left, the thread reads the next one, and fd stays ready. For each fd one read is
 * under way at a time. The file may be closed meanwhile. */
enum { IO_READ_WINDOW = 2 * 1024 * 1024 };
bool io_in_memory(io_loop *loop, int fd, int file, off_t offset, uint64_t now, uint64_t length);

/* Reads up to `now` of the length bytes of file from offset on into buffer, to be sent to fd, without waiting for a
 * disk. Returns as pread(2), perhaps fewer bytes than there are. Returns -1 with EAGAIN if the first one is not in
 * memory; then the thread reads it as above, or is still reading something else for fd. */
ssize_t io_read_file(io_loop *loop, int fd, int file, off_t offset, void *buffer, size_t now, uint64_t length);

/* Gives up the read for fd, which is about to be closed. */
void io_reader_forget(io_loop *loop, int fd);

/* After a wake: ends the waits of the descriptors whose reads are done. */
void io_reader_collect(io_loop *loop);

/* Ends the thread and frees the reader; NULL is allowed. */
void io_reader_free(struct io_reader *reader);

#endif
