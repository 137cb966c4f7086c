/* identity.h - what tells one state of a file from another, as far as stat(2) says it. */
#ifndef GATLING_IDENTITY_H
#define GATLING_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "gatling/platform.h"

/* Everything of stat(2) that changes when a file does. All zero: there is no file. */
struct identity {
	dev_t device;
	ino_t inode;
	mode_t mode;
	off_t size;
	struct timespec modified, changed;
};

/* A file changed so shortly before it was read may change again without its times showing it. */
enum { IDENTITY_RECENT_S = 2 };

static inline struct identity identity_of(const struct stat *st) {
	return (struct identity){.device = st->st_dev,
							 .inode = st->st_ino,
							 .mode = st->st_mode,
							 .size = st->st_size,
							 .modified = st->PLATFORM_MTIME,
							 .changed = st->PLATFORM_CTIME};
}

static inline int identity_compare_times(struct timespec a, struct timespec b) {
	if (a.tv_sec != b.tv_sec) return a.tv_sec < b.tv_sec ? -1 : 1;
	return a.tv_nsec < b.tv_nsec ? -1 : a.tv_nsec > b.tv_nsec;
}

/* Whether what has been made of a file is older than it. Tools that give it the time of the original may cut that to
 * seconds (brotli) or microseconds. */
static inline bool identity_older(const struct identity *made, const struct identity *original) {
	bool cut = made->modified.tv_nsec % 1000 == 0 && made->modified.tv_sec == original->modified.tv_sec;
	return !cut && identity_compare_times(made->modified, original->modified) < 0;
}

static inline bool identity_same(const struct identity *a, const struct identity *b) {
	return a->device == b->device && a->inode == b->inode && a->mode == b->mode && a->size == b->size &&
		   identity_compare_times(a->modified, b->modified) == 0 && identity_compare_times(a->changed, b->changed) == 0;
}

static inline bool identity_recent(const struct identity *id, time_t now) {
	return id->changed.tv_sec > now - IDENTITY_RECENT_S;
}

#endif
