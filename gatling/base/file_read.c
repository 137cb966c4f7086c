/* file_read.c - see file_read.h. */
#include "gatling/base/file_read.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int file_read_at(int fd, char *to, size_t size, off_t from) {
	for (size_t have = 0; have < size;) {
		ssize_t n = pread(fd, to + have, size - have, from + (off_t)have);
		if (n == -1 && errno == EINTR) continue;
		if (n <= 0) return n == 0 ? EAGAIN : errno;
		have += (size_t)n;
	}
	return 0;
}

char *file_read(int fd, size_t size) {
	char *text = malloc(size + 1);
	int error = text ? file_read_at(fd, text, size, 0) : ENOMEM;
	if (!error) {
		text[size] = '\0';
		return text;
	}
	free(text);
	errno = error;
	return NULL;
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
