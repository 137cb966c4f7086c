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
	const char *outside;  /* its path outside of the chroot(2) to it, see docroot_is_chroot(); NULL: there is none */
};

/* Returns whether the process sees nothing but the docroot, after a chroot(2) to it. false: not, or it is unknown. */
bool docroot_is_chroot(const struct docroot *docroot);

/* Returns whether an operation that failed with this errno may soon succeed, so that its failure must not be
 * remembered. */
bool docroot_error_is_temporary(int error);

/* Fills in *st, as stat(2) does. Returns 0, or -1 with errno. */
int docroot_stat(const struct docroot *docroot, const char *path, struct stat *st);

/* Does what docroot_stat() does, but for a symlink itself. Other symlinks in path may lead anywhere. */
int docroot_lstat(const struct docroot *docroot, const char *path, struct stat *st);

/* Opens a file for reading; flags: further flags of open(2). Never waits for a fifo and never acquires a terminal.
 * Returns the descriptor, or -1 with errno. */
int docroot_open(const struct docroot *docroot, const char *path, int flags);

/* Does what docroot_open() does, but fails with EINPROGRESS instead of waiting for a disk, if a part of the path is not
 * in memory. */
int docroot_open_at_once(const struct docroot *docroot, const char *path, int flags);

/* Does what docroot_open_at_once() does, if at_once, or docroot_open() otherwise, but fails with EXDEV if the path
 * leads out of the mount of the root. */
int docroot_open_in_mount(const struct docroot *docroot, const char *path, int flags, bool at_once);

/* Fills in *st and closes fd. Returns 0, or -1 with errno; also if fd is -1, so that the result of a function that
 * opens can be passed directly. */
int docroot_stat_open(int fd, struct stat *st);

/* Does what docroot_stat() does, but fails with EINPROGRESS in the same case. */
int docroot_stat_at_once(const struct docroot *docroot, const char *path, struct stat *st);

/* Writes the target of the symlink at path, NUL-terminated, to target (size bytes). Returns false, with errno, if path
 * is not a symlink or the target is too long. */
bool docroot_readlink(const struct docroot *docroot, const char *path, char *target, size_t size);

#endif
