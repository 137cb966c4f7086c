/* cache_find.c - see cache.h and answer_cache.h: finds entries, and closes files. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/files/key_file.h"
#include "gatling/site/cache/answer_cache.h"
#include "gatling/site/cache/cache_entry.h"
#include "gatling/status/counters.h"
#include "gatling/upstream/upstream_address.h"

/* Whether an entry may be used; AWAITED: threads find that out. */
enum state { CURRENT, OUTDATED, AWAITED };

/* Returns whether the files of an entry are unchanged, and its alternates are there as before. */
static bool is_unchanged(const struct cache_entry *e, const struct file_version *now, const uint64_t *alternate) {
	if (memcmp(alternate, e->resource.alternate, sizeof e->resource.alternate) != 0) return false;
	for (int i = 0; i < CODINGS; i++)
		if (!file_version_same(&now[i], &e->version[i]) || key_file_is_of_tls(&now[i])) return false;
	return true;
}

/* Checks the files of an entry. It need not be loaded again if they are unchanged, and its guard is of the same kind.
 * Updates the guard. */
static enum state check(const struct cache *c, struct cache_entry *e, int64_t now_ms) {
	struct file_version now[CODINGS];
	uint64_t alternate[ALTERNATES];
	const bool decides = !tree_awaits(c->options.tree);
	const int error = cache_entry_look(c, e, now);
	const int unknown = cache_entry_alternates(c, e, &now[CODING_IDENTITY], alternate);
	const bool awaits = tree_awaits(c->options.tree);
	if (!awaits && ((error && error != ENOENT) || unknown || !is_unchanged(e, now, alternate))) return OUTDATED;
	struct guard guard = basic_auth_guard(c->options.auth, e->path, false);
	if (tree_awaits(c->options.tree)) {
		guard_release(&guard);
		if (!decides || now_ms - e->resource.freshness.until_ms >= CACHE_STALE_MS) return AWAITED;
		tree_begin(c->options.tree);
		return CURRENT;
	}
	const enum permission before = e->resource.guard.permission;
	guard_release(&e->resource.guard);
	e->resource.guard = guard;
	freshness_checked(&e->resource.freshness, now_ms);
	return guard.permission == before ? CURRENT : OUTDATED;
}

static enum state state_of(const struct cache *c, struct cache_entry *e, const struct lookup *l, int64_t now_ms) {
	if (e->restricted != l->restricted) return OUTDATED;
	const enum freshness_due due = freshness_due(&e->resource.freshness, e->version, now_ms);
	return due == DUE_NOTHING ? CURRENT : due == DUE_CHECK ? check(c, e, now_ms) : OUTDATED;
}

/* Notes that an entry is used. again: see struct lookup; a request counts once. */
static void note_use(struct cache_entry *e, bool again, int64_t now_ms) {
	e->asked |= !again;
	e->used_ms = now_ms;
}

int cache_find(struct cache *c, const struct lookup *l, int64_t now_ms, struct resource **resource) {
	struct slice path = l->path;
	uint64_t headers = l->headers ? l->headers->id : 0, hash = slice_hash(c->seed + headers, path);
	cache_forget_unkept(c);
	struct cache_entry *e = LIST_FIRST(&cache_bucket(c, hash)->entries);
	while (e && !(e->hash == hash && e->headers == headers && e->is_substitute == l->is_substitute &&
				  e->error == l->error && e->is_alternate == l->is_alternate && slice_equal(e->path, path)))
		e = LIST_NEXT(e, chain);
	const enum state state = e ? state_of(c, e, l, now_ms) : OUTDATED;
	if (state == AWAITED) return EINPROGRESS;
	if (e && state == OUTDATED) {
		cache_entry_drop(c, e);
		e = NULL;
	}
	if (!e) {
		int error = cache_entry_new(c, l, now_ms, &e);
		if (error != EINPROGRESS) count_one(error ? COUNT_CACHE_ABSENT : COUNT_CACHE_LOADED);
		if (error) return error;
		e->hash = hash;
		e->headers = headers;
		e->used_ms = now_ms;
		if (cache_keeps(c, e)) cache_insert(c, e);
		else c->unkept = e;
	} else {
		if (!l->again) count_one(COUNT_CACHE_HITS);
		note_use(e, l->again, now_ms);
	}
	*resource = &e->resource;
	return 0;
}

void cache_found(struct resource *resource, int64_t now_ms) {
	count_one(COUNT_CACHE_HITS);
	note_use((struct cache_entry *)resource, false, now_ms);
}

/* --- what a moment ago led to, see answer_cache.h --- */

static size_t place_of(struct slice host, unsigned port, struct slice path) {
	return slice_hash(slice_hash(port, host), path) % CACHED_ANSWERS;
}

const struct known_answer *answer_cache_find(const struct answer_cache *cache, struct slice host, unsigned port,
											 struct slice path, int64_t now_ms) {
	const struct cached_answer *a = &cache->answer[place_of(host, port, path)];
	if ((!a->known.resource && !a->known.upstream) || now_ms >= a->known.until_ms || a->port != port) return NULL;
	if (a->host_length != host.length || a->path_length != path.length) return NULL;
	if (host.length && memcmp(a->octets, host.at, host.length) != 0) return NULL;
	return memcmp(a->octets + host.length, path.at, path.length) == 0 ? &a->known : NULL;
}

/* Makes an entry one of nothing. */
static void forget(struct cached_answer *a) {
	if (a->known.resource) a->known.resource->kept_at = NULL;
	upstream_target_release((struct upstream_target *)(uintptr_t)a->known.upstream);
	a->known.resource = NULL;
	a->known.upstream = NULL;
}

void answer_cache_keep(struct answer_cache *cache, struct slice host, unsigned port, struct slice path,
					   const struct known_answer *known) {
	struct cached_answer *a = &cache->answer[place_of(host, port, path)];
	if (host.length + path.length + known->target.length > CACHED_ANSWER_OCTETS) return;
	forget(a);
	a->known = *known;
	a->port = (uint16_t)port;
	a->host_length = (uint16_t)host.length;
	a->path_length = (uint16_t)path.length;
	char *const target = TEXT_JOIN(a->octets, host, path);
	a->known.target.at = target;
	(void)text_copy(target, known->target);
	if (known->upstream) (void)upstream_target_retain(known->upstream);
	if (!known->resource) return;
	if (known->resource->kept_at) *known->resource->kept_at = NULL;
	known->resource->kept_at = &a->known.resource;
}

void answer_cache_free(struct answer_cache *cache) {
	for (int i = 0; cache && i < CACHED_ANSWERS; i++) forget(&cache->answer[i]);
	free(cache);
}

/* --- closing files --- */

static bool is_gone(const struct cache_entry *e) {
	for (int i = 0; i < CODINGS; i++)
		if (e->resource.representation[i] && representation_gone(e->resource.representation[i])) return true;
	return false;
}

struct cache_usage cache_usage(const struct cache *c) {
	return (struct cache_usage){.files = c->resources, .bytes = c->bytes, .descriptors = c->descriptors};
}

int cache_due(const struct cache *c, int64_t now_ms) {
	if (!c->descriptors) return -1;
	int64_t left = c->tidied_ms + CACHE_TIDY_MS - now_ms;
	return left > 0 ? (int)left : 0;
}

void cache_tidy(struct cache *c, int64_t now_ms, bool fields_changed) {
	c->tidied_ms = now_ms;
	for (struct cache_entry *e = TAILQ_FIRST(&c->ring[OPEN_FILES].entries), *newer; e; e = newer) {
		newer = TAILQ_NEXT(e, age);
		if (now_ms - e->used_ms >= CACHE_UNUSED_MS || fields_changed || is_gone(e)) cache_entry_drop(c, e);
	}
}
