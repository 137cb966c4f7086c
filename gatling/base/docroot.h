/* docroot.h - the file system below the root, and nothing else: paths are relative to it and NUL-terminated, "." is the
 * root itself. What is here never changes and may be used by any thread. */
#ifndef GATLING_BASE_DOCROOT_H
#define GATLING_BASE_DOCROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "gatling/base/slice.h"

struct docroot {
	int root;             /* descriptor of a directory */
	bool symlinks_inside; /* those that lead out are not followed: EXDEV */
};

/* Whether what failed so may succeed in a moment: nothing is to be concluded, or remembered, from it. */
bool docroot_error_is_temporary(int error);

/* What stat(2) says. 0, or -1 with errno. */
int docroot_stat(const struct docroot *docroot, const char *path, struct stat *st);

/* The same of a symlink itself, whatever leads to it. */
int docroot_lstat(const struct docroot *docroot, const char *path, struct stat *st);

/* open(2), O_RDONLY and more flags; never waits for a fifo nor takes a terminal over. -1 with errno. */
int docroot_open(const struct docroot *docroot, const char *path, int flags);

/* Where the symlink leads at the end of a path, NUL-terminated, in target (room bytes). false: there is none, or it is
 * too long. */
bool docroot_readlink(const struct docroot *docroot, const char *path, char *target, size_t room);

#endif
