/* freshness.h - how long files that the cache has loaded are used before it looks at them again. */
#ifndef GATLING_SITE_CACHE_FRESHNESS_H
#define GATLING_SITE_CACHE_FRESHNESS_H

#include "gatling/base/file_version.h"

enum {
	CACHE_CHECK_MS = 1000, /* how long files are used until they are checked, */
	CACHE_STALE_MS = 1000  /* and how long after that while threads do this, which takes long on another machine */
};

/* What is known of the files of a resource. They begin in the first state that applies to one of them; a check leads
 * from the last two to FRESHNESS_CHECKED, and only loading them again leads out of the others. */
enum freshness_state {
	FRESHNESS_UNSETTLED, /* one may be in the middle of a write (FILE_VERSION_SETTLES_MS): loaded again after that, or
						  * at until_ms */
	FRESHNESS_RECENT,    /* one may change without a change of its times (FILE_VERSION_RECENT_S), or was unreadable for
						  * a temporary reason: loaded again at until_ms */
	FRESHNESS_ASSUMED,   /* their directory was not checked (NAMES_LATELY): checked at until_ms, when next asked for */
	FRESHNESS_CHECKED    /* checked again at until_ms */
};

struct freshness {
	enum freshness_state state;
	int64_t until_ms;
};

/* What has to be done with the files before they are used. */
enum freshness_due { DUE_NOTHING, DUE_CHECK, DUE_LOAD };

/* Returns the freshness of files that were loaded. version: of CODINGS files, zeros where there is none. loaded: when
 * that began. missed: one could not be opened, for a temporary reason. assumed: as NAMES_LATELY says. now_ms is of the
 * monotonic clock. */
struct freshness freshness_loaded(const struct file_version *version, struct timespec loaded, bool missed, bool assumed,
								  int64_t now_ms);

/* Notes that a file could not be read when it was loaded. */
void freshness_unread(struct freshness *freshness);

/* Notes that the files are still those that were loaded. */
void freshness_checked(struct freshness *freshness, int64_t now_ms);

/* Returns what is due. version: as above. */
enum freshness_due freshness_due(const struct freshness *freshness, const struct file_version *version, int64_t now_ms);

/* Returns until when the files may be used without freshness_due(); 0: they may not. */
static inline int64_t freshness_lasts_until(const struct freshness *freshness) {
	return freshness->state == FRESHNESS_UNSETTLED ? 0 : freshness->until_ms;
}

/* Returns whether a later change of a file will be noticed. */
static inline bool freshness_settled(const struct freshness *freshness) {
	return freshness->state >= FRESHNESS_ASSUMED;
}

#endif
