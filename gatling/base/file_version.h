/* file_version.h - what tells one state of a file from another, as far as stat(2) says it. */
#ifndef GATLING_BASE_FILE_VERSION_H
#define GATLING_BASE_FILE_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "gatling/base/platform.h"

/* Everything of stat(2) that changes when a file does. All zero: there is no file. */
struct file_version {
	dev_t device;
	ino_t inode;
	mode_t mode;
	off_t size;
	struct timespec modified, changed;
};

/* A file changed so shortly before it was read may change again without its times showing it. */
enum { FILE_VERSION_RECENT_S = 2 };

static inline struct file_version file_version_of(const struct stat *st) {
	return (struct file_version){.device = st->st_dev,
								 .inode = st->st_ino,
								 .mode = st->st_mode,
								 .size = st->st_size,
								 .modified = st->PLATFORM_MTIME,
								 .changed = st->PLATFORM_CTIME};
}

static inline int file_version_compare_times(struct timespec a, struct timespec b) {
	if (a.tv_sec != b.tv_sec) return a.tv_sec < b.tv_sec ? -1 : 1;
	return a.tv_nsec < b.tv_nsec ? -1 : a.tv_nsec > b.tv_nsec;
}

/* Whether what has been made of a file is older than it. Tools that give it the time of the original may cut that to
 * seconds (brotli) or microseconds. */
static inline bool file_version_older(const struct file_version *made, const struct file_version *original) {
	bool cut = made->modified.tv_nsec % 1000 == 0 && made->modified.tv_sec == original->modified.tv_sec;
	return !cut && file_version_compare_times(made->modified, original->modified) < 0;
}

static inline bool file_version_same(const struct file_version *a, const struct file_version *b) {
	return a->device == b->device && a->inode == b->inode && a->mode == b->mode && a->size == b->size &&
		   file_version_compare_times(a->modified, b->modified) == 0 &&
		   file_version_compare_times(a->changed, b->changed) == 0;
}

static inline bool file_version_recent(const struct file_version *id, time_t now) {
	return id->changed.tv_sec > now - FILE_VERSION_RECENT_S;
}

#endif
