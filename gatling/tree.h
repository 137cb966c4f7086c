/* tree.h - the file system below the root, and nothing else: paths are relative to it and NUL-terminated, "." is the
 * root itself. What is here never changes and may be used by any thread. */
#ifndef GATLING_TREE_H
#define GATLING_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "gatling/slice.h"

struct tree {
	int root;             /* descriptor of a directory */
	bool symlinks_inside; /* those that lead out are not followed: EXDEV */
};

/* Whether what failed so may succeed in a moment: nothing is to be concluded, or remembered, from it. */
bool tree_passes(int error);

/* What stat(2) says. 0, or -1 with errno. */
int tree_stat(const struct tree *tree, const char *path, struct stat *st);

/* The same of a symlink itself, whatever leads to it. */
int tree_lstat(const struct tree *tree, const char *path, struct stat *st);

/* open(2), O_RDONLY and more flags; never waits for a fifo nor takes a terminal over. -1 with errno. */
int tree_open(const struct tree *tree, const char *path, int flags);

/* Where the symlink leads at the end of a path, NUL-terminated, in target (room bytes). false: there is none, or it is
 * too long. */
bool tree_link(const struct tree *tree, const char *path, char *target, size_t room);

#endif
