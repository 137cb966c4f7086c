/* docroot.c - see docroot.h. */
#include "gatling/files/docroot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "gatling/base/platform.h"
#include "gatling/base/slice.h"

bool docroot_error_is_temporary(int error) {
	switch (error) {
	case EAGAIN:
	case EBUSY:
	case EINPROGRESS:
	case EINTR:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	/* of a file system whose server is gone: NFS, FUSE */
	case ECONNABORTED:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENOTCONN:
	case ESTALE:
	case ETIMEDOUT: return true;
	default: return false;
	}
}

bool docroot_is_chroot(const struct docroot *d) {
	struct stat top, root;
	return stat("/", &top) == 0 && fstat(d->root, &root) == 0 && top.st_dev == root.st_dev && top.st_ino == root.st_ino;
}

/* Returns flags with those that every open(2) here has. With O_PATH, openat2(2) rejects most of them. */
static int with_flags(int flags) {
	return flags & PLATFORM_PATH ? flags | O_CLOEXEC : flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
}

int docroot_open(const struct docroot *d, const char *path, int flags) {
	if (d->symlinks_inside) return platform_open_beneath(d->root, path, with_flags(flags));
	return openat(d->root, path, with_flags(flags));
}

int docroot_open_at_once(const struct docroot *d, const char *path, int flags) {
	return platform_open_at_once(d->root, path, with_flags(flags), d->symlinks_inside);
}

int docroot_open_in_mount(const struct docroot *d, const char *path, int flags, bool at_once) {
	return platform_open_in_mount(d->root, path, with_flags(flags), d->symlinks_inside, at_once);
}

int docroot_stat_open(int fd, struct stat *st) {
	if (fd == -1) return -1;
	int result = fstat(fd, st);
	close(fd);
	return result;
}

int docroot_stat(const struct docroot *d, const char *path, struct stat *st) {
	if (!d->symlinks_inside) return fstatat(d->root, path, st, 0);
	return docroot_stat_open(docroot_open(d, path, PLATFORM_PATH), st);
}

int docroot_stat_at_once(const struct docroot *d, const char *path, struct stat *st) {
	return docroot_stat_open(docroot_open_at_once(d, path, PLATFORM_PATH), st);
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
