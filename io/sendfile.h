/* sendfile.h - sendfile(2) or its substitute; each platform has a file that defines it. Internal to io/. */
#ifndef GATLING_IO_SENDFILE_H
#define GATLING_IO_SENDFILE_H

#include "io/internal.h"

/* Does what io_sendfile() does, without the bookkeeping. Sets *full if the socket took less than it was given, whatever
 * the return value. */
ssize_t io_platform_sendfile(int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length,
							 bool *full);

#endif
