/* tree.h - the files below the document root as the loop of a worker sees them. Its functions do what those of
 * docroot.h do, but never wait for a file system that may be on another machine: of a file there they say what threads
 * have found (remote.h). If that is nothing yet, they fail with EINPROGRESS, and tree_awaits() becomes true.
 *
 * Most names that are asked for do not exist: precompressed copies, files of rules. So of a directory on another
 * machine the names are found out first, unless there are too many. */
#ifndef GATLING_FILES_TREE_H
#define GATLING_FILES_TREE_H

#include "gatling/files/remote.h"

struct tree {
	struct docroot docroot; /* for threads, which may wait */
	struct remote *remote;  /* NULL: all files are on this machine */
};

/* Returns whether a path certainly leads to another machine. */
static inline bool tree_is_remote(const struct tree *tree, struct slice path) {
	return tree->remote && remote_has(tree->remote, path);
}

/* Returns whether something has to be found out, so that what is decided now has to be decided again. */
static inline bool tree_awaits(const struct tree *tree) { return tree->remote && remote_is_awaited(tree->remote); }

/* Has threads find out what is awaited, while what was known before is used. */
static inline void tree_begin(const struct tree *tree) {
	if (tree->remote) remote_begin(tree->remote);
}

/* Says that this is going to be asked about a path (REMOTE_OPENED and others), so that it is found out together with
 * the rest. */
void tree_expect(const struct tree *tree, const char *path, unsigned what);

/* Says that a file, which is likely to exist, is going to be asked for, and the rules in the directories on its path.
 */
void tree_expect_file(const struct tree *tree, const char *path, unsigned what);

int tree_stat(const struct tree *tree, const char *path, struct stat *st);
int tree_stat_at_once(const struct tree *tree, const char *path, struct stat *st);
int tree_lstat(const struct tree *tree, const char *path, struct stat *st);
bool tree_readlink(const struct tree *tree, const char *path, char *target, size_t size);

/* Opens a file of this machine. Fails with EREMOTE if it is or may be on another one: see remote_find(). */
int tree_open(const struct tree *tree, const char *path, int flags, bool at_once);

/* Does what tree_stat() does for a file of this machine; fails with EREMOTE, too. */
int tree_stat_here(const struct tree *tree, const char *path, struct stat *st);

/* Reads a regular file of at most max bytes, which is at most REMOTE_WHOLE, as file_load() does. */
char *tree_load(const struct tree *tree, const char *path, size_t max, struct stat *st);

/* Reports why a path is not served, see report_unserved(). */
void tree_report_unserved(const struct tree *tree, const char *path);

#endif
