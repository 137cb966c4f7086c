/* log_file.h - the file of the access log: standard output, or a file that can be opened again after it was renamed. */
#ifndef GATLING_LOG_LOG_FILE_H
#define GATLING_LOG_LOG_FILE_H

#include "gatling/opener/opener.h"

struct log_file {
	int fd;
	struct opener *opener;   /* NULL: standard output */
	int place;               /* the directory in the opener, which a later chroot does not affect */
	const char *path, *name; /* as on the command line; its last segment */
};

#define LOG_FILE_STDOUT ((struct log_file){.fd = STDOUT_FILENO})

/* Adds the directory of a file to the opener, before that is started. The path stays the caller's. Returns 0, or -1
 * with errno. */
int log_file_place(struct log_file *file, struct opener *opener, const char *path);

/* Opens the file for appending, creates it if it does not exist, and closes the old one. Symlinks may lead to its
 * directory, but it must not be a symlink itself: users who may write there must not choose what root appends to.
 * Returns 0; or -1 with errno, and keeps the old one. */
int log_file_open(struct log_file *file);

/* Returns what an errno says of a log that cannot be opened. */
const char *log_file_reason(int error);

/* Closes a file that was opened. */
void log_file_close(struct log_file *file);

#endif
