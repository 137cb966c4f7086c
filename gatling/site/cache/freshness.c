/* freshness.c - see freshness.h. */
#include "gatling/site/cache/freshness.h"

#include "gatling/http/coding.h"

static bool is_unsettled(const struct file_version *version) {
	for (int i = 0; i < CODINGS; i++)
		if (file_version_unsettled_ms(&version[i]) > 0) return true;
	return false;
}

static bool is_recent(const struct file_version *version, struct timespec then) {
	for (int i = 0; i < CODINGS; i++)
		if (version[i].mode && file_version_recent_at(&version[i], then)) return true;
	return false;
}

struct freshness freshness_loaded(const struct file_version *version, struct timespec loaded, bool missed, bool assumed,
								  int64_t now_ms) {
	const int64_t next_ms = now_ms + CACHE_CHECK_MS;
	if (is_unsettled(version)) return (struct freshness){FRESHNESS_UNSETTLED, next_ms};
	if (missed || is_recent(version, loaded)) return (struct freshness){FRESHNESS_RECENT, next_ms};
	if (assumed) return (struct freshness){FRESHNESS_ASSUMED, now_ms};
	return (struct freshness){FRESHNESS_CHECKED, next_ms};
}

void freshness_unread(struct freshness *f) {
	if (f->state > FRESHNESS_RECENT) f->state = FRESHNESS_RECENT;
}

void freshness_checked(struct freshness *f, int64_t now_ms) {
	*f = (struct freshness){FRESHNESS_CHECKED, now_ms + CACHE_CHECK_MS};
}

enum freshness_due freshness_due(const struct freshness *f, const struct file_version *version, int64_t now_ms) {
	if (f->state == FRESHNESS_UNSETTLED && !is_unsettled(version)) return DUE_LOAD;
	if (now_ms < f->until_ms) return DUE_NOTHING;
	return freshness_settled(f) ? DUE_CHECK : DUE_LOAD;
}
