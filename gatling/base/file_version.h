/* file_version.h - the version of a file, from the results of stat(2). */
#ifndef GATLING_BASE_FILE_VERSION_H
#define GATLING_BASE_FILE_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "gatling/base/slice.h"
#include "gatling/base/platform.h"

/* Everything in stat(2) that changes when a file does. All zero: the file does not exist. */
struct file_version {
	dev_t device;
	ino_t inode;
	mode_t mode;
	nlink_t links; /* not part of the version: see file_version_rewritten() */
	off_t size;
	struct timespec modified, changed;
};

/* A file that changed less than this time before it was read may change again without a change of its times. */
enum { FILE_VERSION_RECENT_S = 2 };

static inline struct file_version file_version_of(const struct stat *st) {
	return (struct file_version){.device = st->st_dev,
								 .inode = st->st_ino,
								 .mode = st->st_mode,
								 .links = st->st_nlink,
								 .size = st->st_size,
								 .modified = st->PLATFORM_MTIME,
								 .changed = st->PLATFORM_CTIME};
}

static inline int file_version_compare_times(struct timespec a, struct timespec b) {
	if (a.tv_sec != b.tv_sec) return a.tv_sec < b.tv_sec ? -1 : 1;
	return a.tv_nsec < b.tv_nsec ? -1 : a.tv_nsec > b.tv_nsec;
}

/* Returns whether derived, a file that was made from original, is older than that. Tools that copy the time of the
 * original may cut it to seconds (brotli) or microseconds. */
static inline bool file_version_older(const struct file_version *derived, const struct file_version *original) {
	bool cut = derived->modified.tv_nsec % 1000 == 0 && derived->modified.tv_sec == original->modified.tv_sec;
	return !cut && file_version_compare_times(derived->modified, original->modified) < 0;
}

static inline bool file_version_same(const struct file_version *a, const struct file_version *b) {
	return a->device == b->device && a->inode == b->inode && a->mode == b->mode && a->size == b->size &&
		   file_version_compare_times(a->modified, b->modified) == 0 &&
		   file_version_compare_times(a->changed, b->changed) == 0;
}

/* Returns whether an open file may have been written to between two calls of fstat(2). A write changes its time of
 * change, which no program can set. The removal of a name of the file, as when another one is renamed over it, does so,
 * too, but it also changes the number of links. */
static inline bool file_version_rewritten(const struct file_version *before, const struct file_version *now) {
	if (before->size != now->size || file_version_compare_times(before->modified, now->modified) != 0) return true;
	return before->links == now->links && file_version_compare_times(before->changed, now->changed) != 0;
}

/* Hashes everything that changes when the file does. */
static inline uint64_t file_version_hash(uint64_t seed, const struct file_version *v) {
	const uint64_t key[] = {(uint64_t)v->device,         (uint64_t)v->inode,           (uint64_t)v->size,
							(uint64_t)v->mode,           (uint64_t)v->modified.tv_sec, (uint64_t)v->modified.tv_nsec,
							(uint64_t)v->changed.tv_sec, (uint64_t)v->changed.tv_nsec};
	return slice_hash(seed, (struct slice){.at = (const char *)key, .length = sizeof key});
}

/* Hashes what stays the same when the file changes. */
static inline uint64_t file_version_hash_inode(dev_t device, ino_t inode) {
	const uint64_t key[] = {(uint64_t)device, (uint64_t)inode};
	return slice_hash(0, (struct slice){.at = (const char *)key, .length = sizeof key});
}

/* A file that changed less than this time ago may be in the middle of a write(2): its times change when that begins,
 * and the thread may have lost the processor since. Also, before Linux 6.13, a second write in the same tick of the
 * kernel's clock, which is 1 to 10 ms, does not change them. */
enum { FILE_VERSION_SETTLES_MS = 100 };

/* Returns the time that the system's clock shows. */
static inline struct timespec file_version_clock(void) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now;
}

/* Returns the milliseconds until the last change was FILE_VERSION_SETTLES_MS ago; 0: it was. */
static inline int file_version_unsettled_ms(const struct file_version *version) {
	const struct timespec now = file_version_clock();
	int64_t age_ms =
		((int64_t)now.tv_sec - version->changed.tv_sec) * 1000 + (now.tv_nsec - version->changed.tv_nsec) / 1000000;
	if (!version->mode || age_ms >= FILE_VERSION_SETTLES_MS || age_ms <= -FILE_VERSION_SETTLES_MS) return 0;
	return FILE_VERSION_SETTLES_MS - (int)age_ms;
}

/* Returns whether the last change was less than FILE_VERSION_RECENT_S before a time, or before now. */
static inline bool file_version_recent_at(const struct file_version *version, struct timespec time) {
	time.tv_sec -= FILE_VERSION_RECENT_S;
	return file_version_compare_times(version->changed, time) > 0;
}
static inline bool file_version_recent(const struct file_version *version) {
	return file_version_recent_at(version, file_version_clock());
}

#endif
