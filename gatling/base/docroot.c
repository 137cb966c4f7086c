/* docroot.c - see docroot.h. */
#include "gatling/base/docroot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "gatling/base/platform.h"
#include "gatling/base/text.h"

bool docroot_error_is_temporary(int error) {
	switch (error) {
	case EAGAIN:
	case EBUSY:
	case EINTR:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOMEM: return true;
	default: return false;
	}
}

int docroot_open(const struct docroot *d, const char *path, int flags) {
	flags |= O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (d->symlinks_inside) return platform_open_beneath(d->root, path, flags);
	return openat(d->root, path, flags);
}

int docroot_stat(const struct docroot *d, const char *path, struct stat *st) {
	if (!d->symlinks_inside) return fstatat(d->root, path, st, 0);
	int fd = platform_open_beneath(d->root, path, PLATFORM_PATH | O_CLOEXEC);
	if (fd == -1) return -1;
	int result = fstat(fd, st);
	close(fd);
	return result;
}

int docroot_lstat(const struct docroot *d, const char *path, struct stat *st) {
	return fstatat(d->root, path, st, AT_SYMLINK_NOFOLLOW);
}

bool docroot_readlink(const struct docroot *d, const char *path, char *target, size_t size) {
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX] = ".";
	size_t length = slash ? (size_t)(slash - path) : 0;
	errno = ENAMETOOLONG;
	if (length >= sizeof directory) return false;
	if (length) *text_copy(directory, (struct slice){.at = path, .length = length}) = '\0';
	int fd = docroot_open(d, directory, O_DIRECTORY | PLATFORM_PATH);
	if (fd == -1) return false;
	ssize_t n = readlinkat(fd, slash ? slash + 1 : path, target, size);
	int error = n == -1 ? errno : ENAMETOOLONG;
	close(fd);
	errno = error;
	if (n <= 0 || (size_t)n >= size) return false;
	target[n] = '\0';
	return true;
}
