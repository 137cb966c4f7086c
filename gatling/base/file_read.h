/* file_read.h - reads files into memory. */
#ifndef GATLING_BASE_FILE_READ_H
#define GATLING_BASE_FILE_READ_H

#include <stddef.h>
#include <sys/stat.h>

/* Reads `size` bytes of a file from an offset on. Returns 0 or an errno; EAGAIN: the file is shorter. */
int file_read_at(int fd, char *to, size_t size, off_t from);

/* Reads the first `size` bytes of a file, whatever its offset. Returns them with a NUL behind, to be freed with free();
 * NULL with errno, EAGAIN if the file is shorter: it is being written. */
char *file_read(int fd, size_t size);

/* Does the same without waiting for a disk: NULL with EINPROGRESS if the bytes are not in memory. */
char *file_read_at_once(int fd, size_t size);

/* Reads a regular file of at most `max` bytes in the same way, fills in *st, and closes fd. If fd is -1, returns NULL
 * and leaves errno, so that open(2) can be passed directly. EINVAL: the file is not regular; EFBIG: it is larger. */
char *file_load(int fd, size_t max, struct stat *st);

/* Returns what errno says of a file that file_load() did not read. */
const char *file_load_error(void);

#endif
