/* cache_table.c - see cache_entry.h. The cache is a hash table with chains and two rings, one of the entries that keep
 * files open and one of the others. To make room, a hand goes round a ring, from the oldest entry to the newest, and
 * drops the first that was not found again since the hand last passed it (SIEVE: Zhang et al., NSDI 2024). So files
 * that are requested once, as by a crawler, do not push out the others. A small file does not enter a full cache until
 * it is requested a second time: its memory is then reused for the next one, and is in the processor's cache. Copies of
 * large files that are not in use are dropped before entries (see cache_copied()). Paths without a file are not
 * remembered, so that no client can fill the table with them. */
#include <stdlib.h>

#include "gatling/base/notice.h"
#include "gatling/site/cache/cache_entry.h"

enum { BUCKETS_MIN = 1024 };

struct cache *cache_new(const struct cache_options *options) {
	uint64_t buckets = BUCKETS_MIN;
	while (buckets < options->bytes / CACHE_RESOURCE_BYTES / 2) buckets *= 2;
	struct cache *c = calloc(1, sizeof *c + buckets * sizeof *c->bucket);
	if (!c) return NULL;
	for (int i = 0; i < RINGS; i++) TAILQ_INIT(&c->ring[i].entries);
	TAILQ_INIT(&c->copied);
	c->options = *options;
	c->buckets = buckets;
	c->seed = (uint64_t)(uintptr_t)c; /* enough, since the paths in the table are the owner's, not the clients' */
	return c;
}

void cache_entry_release(struct cache_entry *e) {
	if (--e->references) return;
	for (int i = 0; i < CODINGS; i++)
		if (e->resource.representation[i]) representation_release(e->resource.representation[i]);
	guard_release(&e->resource.guard);
	free(e);
}

void cache_forget_produced(struct resource *r, enum coding coding) {
	representation_release(r->representation[coding]);
	r->representation[coding] = NULL;
	r->available &= ~(1U << coding);
	r->producible |= 1U << coding;
}

void cache_entry_forget_compressed(struct cache_entry *e) {
	for (int i = 0; i < CODINGS; i++)
		if (e->compressed >> i & 1) cache_forget_produced(&e->resource, (enum coding)i);
	for (int i = 0; e->deltas && i < DELTAS_MAX; i++)
		if (e->deltas[i].difference) representation_release(e->deltas[i].difference);
	e->compressed = 0;
	free(e->deltas);
	e->deltas = NULL;
}

static void forget_copies(struct cache *c, struct cache_entry *e) {
	if (!e->copied) return;
	TAILQ_REMOVE(&c->copied, e, copy_age);
	e->copied = false;
	for (int i = 0; i < CODINGS; i++) {
		if (e->resource.copy[i]) representation_release(e->resource.copy[i]);
		e->resource.copy[i] = NULL;
	}
}

/* Returns the ring of an entry, which stays in it: it gets no descriptor later. */
static struct ring *ring_of(struct cache *c, const struct cache_entry *e) {
	return &c->ring[e->descriptors ? OPEN_FILES : IN_MEMORY];
}

void cache_entry_drop(struct cache *c, struct cache_entry *e) {
	LIST_REMOVE(e, chain);
	if (e->resource.kept_at) *e->resource.kept_at = NULL;
	struct ring *ring = ring_of(c, e);
	if (ring->hand == e) ring->hand = TAILQ_NEXT(e, age);
	TAILQ_REMOVE(&ring->entries, e, age);
	ring->length--;
	cache_entry_forget_compressed(e);
	forget_copies(c, e);
	c->resources--;
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	e->cached = false;
	cache_entry_release(e);
}

void cache_drop(struct cache *c, struct resource *resource) {
	struct cache_entry *e = (struct cache_entry *)resource;
	if (e->cached) cache_entry_drop(c, e);
}

/* Returns whether that many resources and bytes are within the limits. */
static bool is_within_limit(const struct cache *c, unsigned resources, size_t bytes) {
	return resources <= c->options.bytes / CACHE_RESOURCE_BYTES && bytes <= c->options.bytes;
}

void cache_entry_account(struct cache *c, struct cache_entry *e) {
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	e->memory = sizeof *e;
	e->descriptors = 0;
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *f = e->resource.representation[i], *copy = e->resource.copy[i];
		if (f && !(e->compressed >> i & 1)) e->memory += representation_memory(f);
		if (copy) e->memory += representation_memory(copy);
		e->descriptors += f && f->fd != -1 && !f->gzipped; /* a gunzipped one shares that of the gzip file */
	}
	c->bytes += e->memory;
	c->descriptors += e->descriptors;
}

struct cache_entry *cache_victim(struct ring *ring, bool (*of_kind)(const struct cache_entry *),
								 const struct cache_entry *spared) {
	for (unsigned i = 0; i < 2 * ring->length; i++) { /* the second round finds one, if there is any */
		struct cache_entry *e = ring->hand ? ring->hand : TAILQ_FIRST(&ring->entries);
		ring->hand = TAILQ_NEXT(e, age);
		if (e == spared || (of_kind && !of_kind(e))) continue;
		if (!e->asked) return e;
		e->asked = false;
	}
	return NULL;
}

struct bucket *cache_bucket(struct cache *c, uint64_t hash) {
	return &c->bucket[hash & (c->buckets - 1)];
}

/* --- copies --- */

void cache_note_copy(struct cache *c, struct cache_entry *e, int64_t now_ms) {
	if (e->copied && e->copied_ms == now_ms) return;
	if (e->copied) TAILQ_REMOVE(&c->copied, e, copy_age);
	TAILQ_INSERT_TAIL(&c->copied, e, copy_age);
	e->copied = true;
	e->copied_ms = now_ms;
}

/* Returns the bytes of the copies of an entry; 0 if one is being sent. */
static uint64_t unused_copies(const struct cache_entry *e) {
	uint64_t bytes = 0;
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *copy = e->resource.copy[i];
		if (copy && representation_shared(copy)) return 0;
		if (copy) bytes += representation_memory(copy);
	}
	return bytes;
}

bool cache_forget_copies(struct cache *c, uint64_t bytes, int64_t now_ms) {
	uint64_t unused = 0;
	struct cache_entry *e = TAILQ_FIRST(&c->copied), *next;
	for (; e && unused < bytes && now_ms - e->copied_ms >= CACHE_CHECK_MS; e = next) {
		next = TAILQ_NEXT(e, copy_age);
		const uint64_t copies = unused_copies(e);
		if (!copies) cache_note_copy(c, e, now_ms);
		unused += copies;
	}
	if (unused < bytes) return false;
	for (unused = 0; unused < bytes;) {
		e = TAILQ_FIRST(&c->copied); /* entries with copies being sent have been moved behind it */
		unused += unused_copies(e);
		forget_copies(c, e);
		cache_entry_account(c, e);
	}
	return true;
}

/* --- making room --- */

/* Drops copies, if the cache takes too many bytes, or else an entry other than `spared`. Returns false if there is
 * none. */
static bool drop_one(struct cache *c, const struct cache_entry *spared) {
	if (c->bytes > c->options.bytes && cache_forget_copies(c, 1, spared->used_ms)) return true;
	struct cache_entry *e = cache_victim(&c->ring[IN_MEMORY], NULL, spared);
	if (!e) e = cache_victim(&c->ring[OPEN_FILES], NULL, spared);
	if (e) cache_entry_drop(c, e);
	return e;
}

void cache_make_room(struct cache *c, struct cache_entry *e) {
	struct cache_entry *other;
	cache_entry_account(c, e);
	while (!is_within_limit(c, c->resources, c->bytes) && drop_one(c, e)) continue;
	while (c->descriptors > c->options.descriptors && (other = cache_victim(&c->ring[OPEN_FILES], NULL, e)))
		cache_entry_drop(c, other);
}

void cache_insert(struct cache *c, struct cache_entry *e) {
	LIST_INSERT_HEAD(&cache_bucket(c, e->hash)->entries, e, chain);
	cache_entry_account(c, e); /* ring_of() needs it */
	c->resources++;
	e->cached = true;
	struct ring *ring = ring_of(c, e);
	TAILQ_INSERT_TAIL(&ring->entries, e, age);
	ring->length++;
	cache_make_room(c, e);
}

/* Returns whether there is room for a new entry. */
static bool has_room(const struct cache *c, const struct cache_entry *e) {
	const struct representation *f = e->resource.representation[CODING_IDENTITY];
	return is_within_limit(c, c->resources + 1, c->bytes + sizeof *e + representation_memory(f));
}

/* Returns whether an entry is a file in memory that has no other representation, and gets none. */
static bool is_simple(const struct cache_entry *e) {
	const struct resource *r = &e->resource;
	return r->available == 1U << CODING_IDENTITY && !r->producible && r->representation[CODING_IDENTITY]->body;
}

bool cache_keeps(struct cache *c, const struct cache_entry *e) {
	if (!is_simple(e) || has_room(c, e)) return true;
	struct bucket *bucket = cache_bucket(c, e->hash);
	const uint32_t mark = (uint32_t)(e->hash >> 32);
	const bool again = bucket->passed == mark;
	bucket->passed = again ? 0 : mark;
	return again;
}

void cache_forget_unkept(struct cache *c) {
	struct cache_entry *e = c->unkept;
	if (!e) return;
	c->unkept = NULL;
	if (e->resource.kept_at) *e->resource.kept_at = NULL;
	cache_entry_release(e);
}

void cache_free(struct cache *c) {
	if (!c) return;
	cache_forget_unkept(c);
	for (int i = 0; i < RINGS; i++)
		while (!TAILQ_EMPTY(&c->ring[i].entries)) cache_entry_drop(c, TAILQ_FIRST(&c->ring[i].entries));
	free(c);
}

/* Returns whether dropping the entry would close a file, which is not the case while that is being sent. */
static bool frees_descriptors(const struct cache_entry *e) {
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *f = e->resource.representation[i];
		if (f && f->fd != -1 && !representation_shared(f)) return true;
	}
	return false;
}

bool cache_lacks_files(const struct cache *c) { return c->open > c->options.open / 4 * 3; }

bool cache_spares_files(const struct cache *c) { return c->open < (c->options.open + c->options.descriptors) / 2; }

bool cache_may_open(struct cache *c) {
	struct cache_entry *e;
	while (c->open >= c->options.open && (e = cache_victim(&c->ring[OPEN_FILES], frees_descriptors, NULL)))
		cache_entry_drop(c, e);
	const bool may = c->open < c->options.open;
	static notice_time next;
	if (!may && notice_due(&next))
		notice_line(LEVEL_WARNING,
					"a worker is sending all of the %u files that may be open: others are answered with 503; more "
					"descriptors (ulimit -n) make room for more",
					c->options.open);
	return may;
}
