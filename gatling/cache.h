/* cache.h - the files of a worker, ready to be sent: opened, checked, their fields formatted, small ones in memory. */
#ifndef GATLING_CACHE_H
#define GATLING_CACHE_H

#include <stdint.h>
#include <sys/stat.h>

#include "gatling/precondition.h"

enum {
	CACHE_FILES_MAX = 16384,            /* entries */
	CACHE_BYTES_MAX = 64 * 1024 * 1024, /* of bodies in memory */
	/* Bytes of a file that is kept in memory; a larger one keeps a descriptor. Linux 6.18, processor time of
	 * sendfile(2) as a ratio to that of sending from memory: 16 KB 1.04 to 1.2, 32 KB 0.9, 64 KB 0.96, 100 KB 0.8, 10
	 * MB 0.9. */
	CACHE_BODY_MAX = 64 * 1024,
	CACHE_CHECK_MS = 1000 /* an entry younger than this is believed without a look at the file system */
};

/* Goes with every Content-Type: what it says holds (https://fetch.spec.whatwg.org/#x-content-type-options-header). */
#define FILE_NOSNIFF "X-Content-Type-Options: nosniff\r\n"

/* One state of one file: never changes, freed with the last reference. */
struct file {
	uint64_t size;
	const char *body; /* of size bytes, or NULL: */
	int fd;           /* read it from here; -1 with a body */
	const char *type; /* the value of Content-Type */
	struct validators validators;
	/* Content-Length; Content-Type with FILE_NOSNIFF; Accept-Ranges, ETag and Last-Modified, each line with its CRLF */
	struct slice fields;
	struct slice block;            /* the same as a header block of HPACK */
	size_t type_at, validators_at; /* where in fields the second and the third part start */
};

/* A further reference; file_release() gives it back, and has the form of an iob_release. */
void file_retain(struct file *file);
void file_release(void *file);

struct cache;

/* A cache for files below the directory root that holds at most `descriptors` files open. NULL: ENOMEM. */
struct cache *cache_new(int root, bool symlinks_inside, unsigned descriptors);
void cache_free(struct cache *cache);

/* Finds the world-readable regular file at path, relative to the root, not empty. 0 with a reference in
 * *file; or an errno: ENOENT, ENOTDIR, EACCES (also: not world-readable, not a regular file,
 * a private key), EISDIR, EXDEV (leads
 * out), EMFILE, ENOMEM, ... now_ms is of the monotonic clock. */
int cache_find(struct cache *cache, struct slice path, int64_t now_ms, struct file **file);

/* What stat(2) says of a path below the root, under the same rule about symlinks. 0, or -1 with errno. */
int cache_stat(const struct cache *cache, const char *path, struct stat *st);

/* Opens a path below the root as cache_find() does, O_RDONLY and more flags. -1 with errno. */
int cache_open(const struct cache *cache, const char *path, int flags);

#endif
