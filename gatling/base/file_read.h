/* file_read.h - reads files into memory. */
#ifndef GATLING_BASE_FILE_READ_H
#define GATLING_BASE_FILE_READ_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>

/* Reads size bytes of a file, from offset `from` on, to `to`. Returns 0 or an errno; EAGAIN: the file is shorter. */
int file_read_at(int fd, char *to, size_t size, off_t from);

/* Does the same from the start of the file, but fails with EINPROGRESS if the bytes are not in memory, instead of
 * waiting for a disk. */
int file_read_at_once_to(int fd, char *to, size_t size);

/* Reads the first size bytes of a file, whatever its file offset is. Returns them with a NUL behind them, to be freed
 * with free(), or NULL with errno; EAGAIN: the file is shorter, since it is being written. */
char *file_read(int fd, size_t size);

/* Does what file_read() does, in pieces of so many bytes. Adds 1 to *begun before each (NULL: to nothing). Fails with
 * ECANCELED when *stop becomes true. */
char *file_read_pieces(int fd, size_t size, size_t piece, const atomic_bool *stop, atomic_uint *begun);

/* Does what file_read() does, but fails with EINPROGRESS if the bytes are not in memory, instead of waiting for a
 * disk. */
char *file_read_at_once(int fd, size_t size);

/* Reads a regular file of at most max bytes as file_read() does, fills in *st, and closes fd. If fd is -1, returns NULL
 * and leaves errno alone, so that the result of open(2) can be passed directly. EINVAL: the file is not regular; EFBIG:
 * it is larger. */
char *file_load(int fd, size_t max, struct stat *st);

/* Returns the reason, from errno, why file_load() failed. */
const char *file_load_error(void);

#endif
