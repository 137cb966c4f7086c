/* log_file.c - see log_file.h. */
#include "gatling/log_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "gatling/platform.h"

static const char *name_of(const char *path) {
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int open_directory(const char *path) {
	char directory[PATH_MAX];
	size_t length = (size_t)(name_of(path) - path);
	if (length >= sizeof directory) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(directory, path, length);
	directory[length] = '\0';
	return open(length ? directory : ".", PLATFORM_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Does not wait for the reader of a pipe: without one it fails. */
static int open_to_append(const struct log_file *file) {
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	return openat(file->directory, name_of(file->path), flags, LOG_FILE_MODE);
}

int log_file_open(struct log_file *file, const char *path) {
	*file = (struct log_file){.fd = -1, .directory = open_directory(path), .path = path};
	if (file->directory == -1) return -1;
	file->fd = open_to_append(file);
	if (file->fd != -1) return 0;
	int error = errno;
	log_file_close(file);
	errno = error;
	return -1;
}

int log_file_reopen(struct log_file *file) {
	int fd = open_to_append(file);
	if (fd == -1) return -1;
	close(file->fd);
	file->fd = fd;
	return 0;
}

void log_file_close(struct log_file *file) {
	if (file->directory == -1) return;
	if (file->fd != -1) close(file->fd);
	close(file->directory);
	file->directory = -1;
}
