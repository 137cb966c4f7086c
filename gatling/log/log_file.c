/* log_file.c - see log_file.h. */
#include "gatling/log/log_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int add_place(struct log_file *file, struct broker *broker, const char *path, enum broker_rule rule) {
	*file = (struct log_file){.fd = -1, .broker = broker, .path = path};
	file->place = broker_add(broker, path, rule, &file->name);
	return file->place == -1 ? -1 : 0;
}

int log_file_place(struct log_file *file, struct broker *broker, const char *path) {
	return add_place(file, broker, path, BROKER_LOG);
}

int log_file_place_directory(struct log_file *file, struct broker *broker, const char *path) {
	return add_place(file, broker, path, BROKER_LOGS);
}

bool log_file_is_directory(const struct log_file *file) { return file->name && !*file->name; }

int log_file_open(struct log_file *file) {
	int fd = broker_open_log(file->broker, file->place, file->name);
	if (fd == -1) return -1;
	if (file->fd != -1) close(file->fd);
	file->fd = fd;
	return 0;
}

const char *log_file_reason(int error) {
	if (error == ESTALE) return "another directory has taken the place of its own: restart gatling to use that";
	return error == ELOOP ? "it is a symbolic link, which is not followed" : strerror(error);
}

void log_file_close(struct log_file *file) {
	if (file->broker && file->fd != -1) close(file->fd);
	file->broker = NULL;
}
