/* reader.h - reads parts of files into the page cache, by a thread beside the loop, so that a batch that is sent does
 * not wait for a disk. Internal to io/. */
#ifndef GATLING_IO_READER_H
#define GATLING_IO_READER_H

#include "io/internal.h"

/* Returns whether the first `now` of length bytes of file from offset on can be sent to fd without waiting for a disk,
 * as far as two of them show it: the last, and the first unless the file begins there. If not, a thread reads them into
 * memory, and what follows up to IO_READ_WINDOW; until then fd is not ready for writing. Then the next answer for this
 * offset is true, whatever came of the read, unless fd had to wait for another one. When less than half of what was
 * read is left, the thread reads the next window, and fd stays ready. The file may be closed meanwhile. One read is
 * under way for fd at a time. */
enum { IO_READ_WINDOW = 2 * 1024 * 1024 };
bool io_in_memory(io_loop *loop, int fd, int file, off_t offset, uint64_t now, uint64_t length);

/* Reads up to `now` of the length bytes of file from offset on, which are to be sent to fd, into buffer, and does not
 * wait for a disk, either: if the first is not in memory, returns -1 with EAGAIN, and a thread reads as above, or reads
 * something else for fd. Otherwise returns as pread(2), perhaps fewer bytes. */
ssize_t io_read_file(io_loop *loop, int fd, int file, off_t offset, void *buffer, size_t now, uint64_t length);

/* fd is closed: a read for it is given up. */
void io_reader_forget(io_loop *loop, int fd);

/* After a wake: makes the descriptors whose reads are done as ready for writing as they were before. */
void io_reader_collect(io_loop *loop);

/* NULL is allowed. */
void io_reader_free(struct io_reader *reader);

#endif
