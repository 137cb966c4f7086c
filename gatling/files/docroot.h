/* docroot.h - the files below the document root. Paths are relative to it and NUL-terminated; "." is the root itself.
 * A docroot does not change: any thread may use it. */
#ifndef GATLING_FILES_DOCROOT_H
#define GATLING_FILES_DOCROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "gatling/base/slice.h"

struct docroot {
	int root;             /* descriptor of a directory */
	bool symlinks_inside; /* symlinks that lead out of it are refused with EXDEV */
};

/* Returns whether an operation that failed with this errno may soon succeed: nothing is to be concluded from the
 * failure, or remembered. */
bool docroot_error_is_temporary(int error);

/* Fills in *st, as stat(2). Returns 0, or -1 with errno. */
int docroot_stat(const struct docroot *docroot, const char *path, struct stat *st);

/* Fills in *st of a symlink itself. The directories on the way may lead anywhere. */
int docroot_lstat(const struct docroot *docroot, const char *path, struct stat *st);

/* Opens a file for reading, with more flags of open(2). Never waits for a fifo and never acquires a terminal. Returns
 * -1 with errno. */
int docroot_open(const struct docroot *docroot, const char *path, int flags);

/* Opens a file in the same way, but does not wait for a disk: -1 with EINPROGRESS if what leads to the file is not in
 * memory. */
int docroot_open_at_once(const struct docroot *docroot, const char *path, int flags);

/* Does as docroot_stat() in the same way. */
int docroot_stat_at_once(const struct docroot *docroot, const char *path, struct stat *st);

/* Writes the target of the symlink at path, NUL-terminated, to target (size bytes). Returns false, with errno, if path
 * is no symlink or the target is too long. */
bool docroot_readlink(const struct docroot *docroot, const char *path, char *target, size_t size);

#endif
