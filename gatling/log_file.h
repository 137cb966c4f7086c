/* log_file.h - where the log goes: standard output, or a file that can be opened again after it has been renamed. */
#ifndef GATLING_LOG_FILE_H
#define GATLING_LOG_FILE_H

enum { LOG_FILE_MODE = 0640 };

struct log_file {
	int fd;
	int directory;    /* that of the file, so that a later root or working directory does not matter; -1: no file */
	const char *path; /* as the command line names it */
};

/* Where the log goes without a file. */
#define LOG_FILE_STDOUT ((struct log_file){.fd = STDOUT_FILENO, .directory = -1})

/* Opens a file to append to, which is made if it is not there. The path stays the caller's. Symbolic links lead to its
 * directory, but not on from there: who may write to that should not choose what root appends to. -1 with errno. */
int log_file_open(struct log_file *file, const char *path);

/* Opens a file of that name in the directory in place of the old one. -1 with errno: the old one stays. */
int log_file_reopen(struct log_file *file);

/* Closes what has been opened. */
void log_file_close(struct log_file *file);

#endif
