/* names.h - remembers the names in directories, so that a missing file is known without asking the file system for its
 * name. In each turn of a worker a directory is examined once (stat(2)), and it is read again when it has changed, so
 * that a new file is found at once. If an existing file has not been replaced, its directory is examined only every
 * NAMES_LATELY_MS. */
#ifndef GATLING_FILES_NAMES_H
#define GATLING_FILES_NAMES_H

#include <stdint.h>

#include "gatling/base/file_version.h"
#include "gatling/files/tree.h"

/* A directory takes 200 bytes and its path, each name 8, and one with the suffix of a coding 16. The least recently
 * used directories are dropped. A directory is read once it has been asked for often enough to pay: reading
 * NAMES_A_QUESTION names takes as long as the system calls that answer one question without them. Until it is read, it
 * is assumed to have a name for each NAMES_OCTETS bytes of its size. */
enum {
	NAMES_BYTES = 16 * 1024 * 1024, /* bytes for all workers, but at least NAMES_BYTES_LEAST for each */
	NAMES_BYTES_LEAST = 2 * 1024 * 1024,
	NAMES_MAX = 16 * 1024, /* names of a directory; one with more is not read */
	NAMES_LATELY_MS = 500, /* half of the second in which a change should be noticed */
	/* After this time a directory is read again, even if the file system reports no change. */
	NAMES_VALID_MS = 300000,
	NAMES_PATH_MAX = 8 * 1024,
	NAMES_A_QUESTION = 64,
	NAMES_SHALLOW = 4, /* directories on a path that names_reach() does not examine */
	NAMES_OCTETS = 24
};

struct names;

/* Returns the names for one of so many workers, or NULL without memory. now_ns is the monotonic clock: directories are
 * examined again when it has changed, which it does once a turn of the loop. It and the tree must outlive them. */
struct names *names_new(const struct tree *tree, const int64_t *now_ns, unsigned workers);
void names_free(struct names *names);

/* Returns whether there is certainly no file at path. path must not be empty; a slash at its end does not matter.
 * false: there may be one, or names is NULL. */
bool names_lack(struct names *names, struct slice path);

/* Returns whether there is certainly no precompressed copy of the file at path (PATH.gz). */
bool names_lack_coded(struct names *names, struct slice path);

/* Returns the length of the part of path, up to a slash, below which there may be files. If path has more than
 * NAMES_SHALLOW directories, the part ends before the first one that certainly does not exist. A caller that examines
 * each directory on a path calls this first, since a path of many segments would take long. */
size_t names_reach(struct names *names, struct slice path);

/* Returns what names_lack() would have returned at some time in the last NAMES_LATELY_MS. */
bool names_lacked_lately(struct names *names, struct slice path);

/* What is known about a path: a set of these. 0: there certainly is no file. */
enum {
	NAMES_ITSELF = 1 << 0,   /* it exists */
	NAMES_REGULAR = 1 << 1,  /* it is a regular file, not a symlink */
	NAMES_CODED = 1 << 2,    /* it has precompressed copies */
	NAMES_UNTOLD = 1 << 3,   /* nothing is known; always alone */
	NAMES_LATELY = 1 << 4,   /* with NAMES_REGULAR: this was so at some time in the last NAMES_LATELY_MS */
	NAMES_DIRECTORY = 1 << 5 /* it is a directory, not a symlink; or, once in 2^31, there is none of that name */
};

struct names_told {
	unsigned what;
	uint32_t inode; /* NAMES_REGULAR: the last bits of its inode number */
	dev_t device;   /* NAMES_REGULAR: the device of its directory */
};

/* Returns what is known about a path. Reads from a disk only if a directory has changed that names_lack() has examined
 * before. About files in other directories nothing is known. */
struct names_told names_tell(struct names *names, struct slice path);

/* Called after NAMES_LATELY: returns whether a file that was opened at path is the one in *told. If not, examines the
 * directory again, since it may have changed. */
bool names_told_of(struct names *names, struct slice path, const struct names_told *told,
				   const struct file_version *file);

/* Called after names_lack() has returned true for a file: returns whether the directory that it would be in exists.
 * false: it does not, or that is unknown. */
bool names_entered(struct names *names, struct slice directory);

/* Does what tree_stat() does, but fails with ENOENT at once if there is certainly no file. */
int names_stat(struct names *names, const struct tree *tree, const char *path, struct stat *st);

#endif
