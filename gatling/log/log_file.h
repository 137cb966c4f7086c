/* log_file.h - the file of the access log: standard output, or a file that can be opened again after it was renamed. */
#ifndef GATLING_LOG_LOG_FILE_H
#define GATLING_LOG_LOG_FILE_H

#include "gatling/broker/broker.h"

struct log_file {
	int fd;
	struct broker *broker;   /* NULL: standard output */
	int place;               /* of the broker, for its directory, which a later chroot does not affect */
	const char *path, *name; /* as on the command line, and its last segment */
};

#define LOG_FILE_STDOUT ((struct log_file){.fd = STDOUT_FILENO})

/* Adds the directory of a file to the broker, which must not be started yet. The path must outlive *file. Returns 0, or
 * -1 with errno. */
int log_file_place(struct log_file *file, struct broker *broker, const char *path);

/* Adds a directory in which the files have the names NAME.log. Sets file->name to "", for copies of *file that have a
 * name. */
int log_file_place_directory(struct log_file *file, struct broker *broker, const char *path);
bool log_file_is_directory(const struct log_file *file);

/* Opens the file for appending, creates it if it does not exist, and closes the old one. Symlinks may lead to its
 * directory, but it must not be a symlink itself: users who may write there must not choose what root appends to.
 * Returns 0, or -1 with errno, and then keeps the old one. */
int log_file_open(struct log_file *file);

/* Returns the reason why log_file_open() failed with an errno. */
const char *log_file_reason(int error);

/* Closes the file, unless it is standard output. */
void log_file_close(struct log_file *file);

#endif
