/* log_file.h - where the log goes: standard output, or a file that can be opened again after it has been renamed. */
#ifndef GATLING_LOG_LOG_FILE_H
#define GATLING_LOG_LOG_FILE_H

#include "gatling/base/opener.h"

struct log_file {
	int fd;
	struct opener *opener; /* NULL: no file */
	int place;             /* its directory there, so that a later root or working directory does not matter */
	const char *path;      /* as the command line names it */
};

/* Where the log goes without a file. */
#define LOG_FILE_STDOUT ((struct log_file){.fd = STDOUT_FILENO})

/* Adds the directory of a file to the opener, before that is started. The path stays the caller's. -1 with errno. */
int log_file_place(struct log_file *file, struct opener *opener, const char *path);

/* Opens the file to append to, which is made if it is not there; or one of that name in place of the old one. Symbolic
 * links lead to its directory, but not on from there: who may write to that should not choose what root appends to. -1
 * with errno: the old one stays. */
int log_file_open(struct log_file *file);

/* Closes what has been opened. */
void log_file_close(struct log_file *file);

#endif
