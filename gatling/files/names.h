/* names.h - the names in the directories that are asked for, so that what is not there is known without asking the file
 * system for each name. A directory is looked at once in a turn of the worker, and read again when it has changed: a
 * new file is found at once. For a file that is there, and is the one that was, a look at its directory is valid for
 * NAMES_LATELY_MS. */
#ifndef GATLING_FILES_NAMES_H
#define GATLING_FILES_NAMES_H

#include <stdint.h>

#include "gatling/base/file_version.h"
#include "gatling/files/docroot.h"

/* A directory takes 200 bytes and its path, each name 8, one with the suffix of a coding 16; the least recently used
 * are dropped. A directory is read once it has been asked for often enough to pay: reading NAMES_A_QUESTION names takes
 * as long as the system calls that one question costs without them. Until it is read, one name in each NAMES_OCTETS
 * bytes of its size is assumed. */
enum {
	NAMES_BYTES = 16 * 1024 * 1024, /* of all directories that all workers remember, but each has at least */
	NAMES_BYTES_LEAST = 2 * 1024 * 1024,
	NAMES_MAX = 16 * 1024,   /* names of a directory; one with more is not read */
	NAMES_LATELY_MS = 500,   /* half of the second in which a change is to be noticed */
	NAMES_VALID_MS = 300000, /* after which a directory is read again: whatever a file system says of changes */
	NAMES_PATH_MAX = 8 * 1024,
	NAMES_A_QUESTION = 64,
	NAMES_SHALLOW = 4, /* directories on a path of which each can be asked for */
	NAMES_OCTETS = 24
};

struct names;

/* Those of one of so many workers. Returns NULL: ENOMEM. The docroot must outlive it. */
struct names *names_new(const struct docroot *docroot, unsigned workers);
void names_free(struct names *names);

/* Returns whether the file system of the docroot is not one of this machine: then a look at any file may take long. */
bool names_elsewhere(const struct names *names);

/* Begins a turn, at that time of the monotonic clock: directories are looked at again. */
void names_turn(struct names *names, int64_t now_ns);

/* Returns whether there is certainly no file at a path (not empty; a slash at its end does not matter). false: there
 * may be one; so it is with NULL for names. */
bool names_lack(struct names *names, struct slice path);

/* Returns the same of files in other codings beside it (PATH.gz). */
bool names_lack_coded(struct names *names, struct slice path);

/* Returns the length of the directories of a path, with a slash behind them, below which there may be files: it ends
 * before the first that certainly is not there, if the path has more than NAMES_SHALLOW. A caller that looks at
 * each directory on a path asks this before, or a path of many segments takes long. */
size_t names_reach(struct names *names, struct slice path);

/* Returns what names_lack() did at some time in the last NAMES_LATELY_MS. */
bool names_lacked_lately(struct names *names, struct slice path);

/* What is known of a path: a set of these; none: there certainly is nothing. */
enum {
	NAMES_ITSELF = 1 << 0,  /* there is something at it, */
	NAMES_REGULAR = 1 << 1, /* which is a regular file: a link is not, */
	NAMES_CODED = 1 << 2,   /* there are files in other codings beside it; */
	NAMES_UNTOLD = 1 << 3,  /* alone: nothing is known; */
	NAMES_LATELY = 1 << 4   /* beside NAMES_REGULAR: that was so at some time in the last NAMES_LATELY_MS */
};

struct names_told {
	unsigned what;
	uint32_t inode; /* of a regular file: the last bits of its number, */
	dev_t device;   /* if it is on this device */
};

/* Returns what is known of a path. Reads nothing from a disk but what has changed in a directory that names_lack() has
 * looked at before; of others nothing is known. */
struct names_told names_tell(struct names *names, struct slice path);

/* After NAMES_LATELY: returns whether the file that has been opened at that path is the one that was there. If not, the
 * directory has been looked at again: it may be another one now. */
bool names_told_of(struct names *names, struct slice path, const struct names_told *told,
				   const struct file_version *file);

/* Does what docroot_stat() does, unless there is certainly no file. */
int names_stat(struct names *names, const struct docroot *docroot, const char *path, struct stat *st);

#endif
