/* log_file.c - see log_file.h. */
#include "gatling/log/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/platform.h"

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

int log_file_place(struct log_file *file, struct opener *opener, const char *path) {
	int directory = open_directory(path);
	if (directory == -1) return -1;
	*file = (struct log_file){.fd = -1, .opener = opener, .path = path};
	file->place = opener_add(opener, directory, OPENER_LOG, name_of(path));
	return file->place == -1 ? -1 : 0;
}

int log_file_open(struct log_file *file) {
	int fd = opener_open(file->opener, file->place, name_of(file->path));
	if (fd == -1) return -1;
	if (file->fd != -1) close(file->fd);
	file->fd = fd;
	return 0;
}

void log_file_close(struct log_file *file) {
	if (file->opener && file->fd != -1) close(file->fd);
	file->opener = NULL;
}
