/* file_read.c - see file_read.h. */
#include "gatling/base/file_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/at_once.h"

/* Reads size bytes with read_some(), which is pread(2), or io_pread_at_once(), whose EAGAIN becomes EINPROGRESS.
 * Returns 0 or an errno. */
static int read_all(int fd, char *to, size_t size, off_t from, ssize_t (*read_some)(int, void *, size_t, off_t)) {
	for (size_t have = 0; have < size;) {
		ssize_t n = read_some(fd, to + have, size - have, from + (off_t)have);
		if (n == -1 && errno == EINTR) continue;
		if (n == -1) return errno == EAGAIN ? EINPROGRESS : errno;
		if (n == 0) return EAGAIN;
		have += (size_t)n;
	}
	return 0;
}

int file_read_at(int fd, char *to, size_t size, off_t from) { return read_all(fd, to, size, from, pread); }

int file_read_at_once_to(int fd, char *to, size_t size) { return read_all(fd, to, size, 0, io_pread_at_once); }

/* Ends a text that was read, or frees it and sets errno. Returns it, or NULL. */
static char *finish_text(char *text, size_t size, int error) {
	if (!error) {
		text[size] = '\0';
		return text;
	}
	free(text);
	errno = error;
	return NULL;
}

static char *read_text(int fd, size_t size, ssize_t (*read_some)(int, void *, size_t, off_t)) {
	char *text = malloc(size + 1);
	return finish_text(text, size, text ? read_all(fd, text, size, 0, read_some) : ENOMEM);
}

char *file_read_pieces(int fd, size_t size, size_t piece, const atomic_bool *stop, atomic_uint *begun) {
	char *text = malloc(size + 1);
	int error = text ? 0 : ENOMEM;
	for (size_t at = 0, n; at < size && !error; at += n) {
		n = size - at < piece ? size - at : piece;
		if (begun) atomic_fetch_add(begun, 1);
		error = atomic_load(stop) ? ECANCELED : file_read_at(fd, text + at, n, (off_t)at);
	}
	return finish_text(text, size, error);
}

char *file_read(int fd, size_t size) { return read_text(fd, size, pread); }
char *file_read_at_once(int fd, size_t size) { return read_text(fd, size, io_pread_at_once); }

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

const char *file_load_error(void) { return errno == EINVAL ? "it is not a file" : strerror(errno); }
