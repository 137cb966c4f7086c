/* file_read.c - see file_read.h. */
#include "gatling/base/file_read.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

char *file_read(int fd, size_t size) {
	char *text = malloc(size + 1);
	for (size_t have = 0; text && have < size;) {
		ssize_t n = pread(fd, text + have, size - have, (off_t)have);
		if (n > 0) {
			have += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			int error = n == 0 ? EAGAIN : errno;
			free(text);
			text = NULL;
			errno = error;
		}
	}
	if (text) text[size] = '\0';
	return text;
}

char *file_load(int fd, size_t max, struct stat *st) {
	char *text = NULL;
	if (fd == -1) return NULL;
	if (fstat(fd, st) == 0) {
		if (!S_ISREG(st->st_mode)) errno = EINVAL;
		else if ((size_t)st->st_size > max) errno = EFBIG;
		else text = file_read(fd, (size_t)st->st_size);
	}
	int error = errno;
	close(fd);
	errno = error;
	return text;
}
