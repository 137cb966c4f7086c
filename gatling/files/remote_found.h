/* remote_found.h - what a thread finds at a path of a file system that may be on another machine (remote.h). */
#ifndef GATLING_FILES_REMOTE_FOUND_H
#define GATLING_FILES_REMOTE_FOUND_H

#include <stdatomic.h>

#include "gatling/base/file_version.h"
#include "gatling/files/docroot.h"

enum {
	REMOTE_START = 64 * 1024,   /* bytes at the start of a file that are read with it */
	REMOTE_WHOLE = 1024 * 1024, /* bytes of a file that is read as a whole */
	REMOTE_NAMES_MAX = 512      /* names of a directory; those of a larger one are not remembered */
};

/* What is to be found out about a path: a set. Whether it exists, and what it is, always is. */
enum {
	REMOTE_OPENED = 1 << 0, /* start, and the file stays open if it is longer */
	REMOTE_READ = 1 << 1,   /* start is the whole file, or content_error EFBIG: it is longer than REMOTE_WHOLE */
	REMOTE_HOLDER = 1 << 2,
	REMOTE_NAMES = 1 << 3 /* the names in a directory */
};

struct remote_file;

/* Each errno is 0 if the members behind it are valid. */
struct remote_found {
	unsigned what; /* what was to be found out */
	int error;     /* of lstat(2); if it is not 0, nothing else is valid */
	struct stat link;
	int target_error; /* of stat(2) */
	struct stat target;
	int leads_to_error; /* of readlink(2); EINVAL: it is no symlink */
	char *leads_to;     /* its target */
	int holder_error;   /* REMOTE_HOLDER: the directory that has the path */
	struct stat holder;
	int content_error; /* REMOTE_OPENED, REMOTE_READ; EINVAL: it is no regular file */
	struct stat content;
	char *start;              /* with a NUL behind it; NULL: it changes while it is read, or was taken */
	size_t length;            /* of start */
	struct remote_file *file; /* the open file, NULL: none; remote.c makes it of fd, which is -1 otherwise */
	int fd;
	int names_error; /* REMOTE_NAMES; E2BIG: they are too many */
	char *names;     /* with a NUL behind each, and in front of the first; letters of ASCII are small */
	size_t names_length;
	bool same;  /* the content is of the version that was given; there is neither start nor file */
	bool taken; /* start or file was given away */
};

/* How a thread finds it out. */
struct remote_search {
	const struct docroot *docroot;
	const char *path;
	unsigned what;
	const struct file_version *known; /* a version of which the content is known; NULL: of none */
	atomic_uint *steps;               /* counts the system calls that begin */
	const atomic_bool *stop;
};

/* Fills in *found. */
void remote_found_search(const struct remote_search *search, struct remote_found *found);

/* Returns whether a directory, of which REMOTE_NAMES was found out, has no file of a name. An access may find a file
 * whose name is in another case. */
bool remote_found_lacks(const struct remote_found *found, struct slice name);

/* Frees what it has in memory. */
void remote_found_free(struct remote_found *found);

#endif
