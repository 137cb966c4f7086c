/* cache.c - see cache.h. A hash table with chains, and two rings, of entries that keep files open and of the others. A
 * hand goes round each, from the oldest to the newest, to find what has to make room: what was not asked for again
 * since it passed last (SIEVE: Zhang et al., NSDI 2024). So files that are asked for once, as by a crawler, do not push
 * out the others. A small file does not even enter a full cache before it is asked for twice: what it is sent from is
 * then used for the next one, and is in the processor's cache. Paths without a file are not remembered, so that no
 * client can fill the table with them. */
#include "gatling/site/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "gatling/base/gzip.h"
#include "gatling/base/hash.h"
#include "gatling/base/notice.h"
#include "gatling/base/text.h"
#include "gatling/files/unserved.h"
#include "gatling/http/freshness.h"
#include "gatling/http/media_type.h"
#include "gatling/files/digest.h"
#include "gatling/status/counters.h"

enum { BUCKETS_MIN = 1024, SUFFIX_ROOM = 8 };

enum { IN_MEMORY, OPEN_FILES /* those with descriptors */, RINGS };

/* What is done to a representation beside the loop. */
enum job_kind { COMPRESS, UNPACK, HASH, JOB_KINDS };

struct cache_entry {
	struct resource resource; /* first: a resource is its entry */
	unsigned references;      /* of the cache and of jobs */
	bool cached;              /* the cache has a reference */
	bool asked;               /* it was found again since the hand passed it */
	bool unsettled;           /* it was loaded in FILE_VERSION_SETTLES_MS, and is loaded again after it */
	bool recent;              /* see FILE_VERSION_RECENT_S; or a file could not be opened for a temporary reason */
	bool lately;              /* what else there is in its directory was known from a look before, see NAMES_LATELY */
	bool compressed;          /* its gzip was compressed here */
	bool restricted, stands_in, error, fetched; /* of struct lookup */
	uint64_t hash, headers;                     /* headers: the id of the set, 0 for none */
	int64_t checked_ms, used_ms;
	size_t memory;
	unsigned descriptors;
	struct file_version version[CODINGS]; /* of the file and those beside it */
	struct cache_job *job[JOB_KINDS];     /* those that are not finished; NULL: none */
	LIST_ENTRY(cache_entry) chain;
	TAILQ_ENTRY(cache_entry) age;
	struct slice path;
	char text[]; /* of the path, NUL-terminated */
};

struct cache {
	struct cache_options options;
	uint64_t seed;
	uint64_t pending[JOB_KINDS]; /* bytes of the files of jobs that are not finished */
	size_t compressed;           /* bytes of memory with compressed bodies, also to be sent */
	unsigned open;               /* files with a descriptor, also to be sent */
	unsigned resources, descriptors;
	size_t bytes;
	int64_t tidied_ms;
	struct ring {
		TAILQ_HEAD(, cache_entry) entries; /* the oldest first */
		struct cache_entry *hand;          /* which it comes to next; NULL: the oldest */
		unsigned length;
	} ring[RINGS];
	struct cache_entry *passing; /* found last, and not in the table; NULL: what was found last is in it */
	uint64_t buckets;            /* a power of two */
	struct bucket {
		LIST_HEAD(, cache_entry) entries;
		uint32_t passed; /* part of the hash of the last one that was not kept; 0: none */
	} bucket[];
};

struct cache *cache_new(const struct cache_options *options) {
	uint64_t buckets = BUCKETS_MIN;
	while (buckets < options->bytes / CACHE_RESOURCE_BYTES / 2) buckets *= 2;
	struct cache *c = calloc(1, sizeof *c + buckets * sizeof *c->bucket);
	if (!c) return NULL;
	for (int i = 0; i < RINGS; i++) TAILQ_INIT(&c->ring[i].entries);
	c->options = *options;
	c->buckets = buckets;
	c->seed = (uint64_t)(uintptr_t)c; /* the paths in the table are the owner's, not the clients' */
	return c;
}

static void entry_release(struct cache_entry *e) {
	if (--e->references) return;
	for (int i = 0; i < CODINGS; i++)
		if (e->resource.representation[i]) representation_release(e->resource.representation[i]);
	for (int i = 0; i < REALMS_OF_PATH; i++) realm_release(e->resource.realm[i]);
	free(e);
}

/* --- the table --- */

/* Forgets a representation that can be generated again. */
static void forget_produced(struct resource *r, enum coding coding) {
	representation_release(r->representation[coding]);
	r->representation[coding] = NULL;
	r->available &= ~(1U << coding);
	r->producible |= 1U << coding;
}

static void forget_compressed(struct cache_entry *e) {
	forget_produced(&e->resource, CODING_GZIP);
	e->compressed = false;
}

/* An entry stays in its ring: it gets no descriptor later. */
static struct ring *ring_of(struct cache *c, const struct cache_entry *e) {
	return &c->ring[e->descriptors ? OPEN_FILES : IN_MEMORY];
}

static void drop(struct cache *c, struct cache_entry *e) {
	LIST_REMOVE(e, chain);
	if (e->resource.asked_at) *e->resource.asked_at = NULL;
	struct ring *ring = ring_of(c, e);
	if (ring->hand == e) ring->hand = TAILQ_NEXT(e, age);
	TAILQ_REMOVE(&ring->entries, e, age);
	ring->length--;
	if (e->compressed) forget_compressed(e);
	c->resources--;
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	e->cached = false;
	entry_release(e);
}

void cache_drop(struct cache *c, struct resource *resource) {
	struct cache_entry *e = (struct cache_entry *)resource;
	if (e->cached) drop(c, e);
}

/* Returns whether it may have so many resources, and take so many bytes. */
static bool is_within_limit(const struct cache *c, unsigned resources, size_t bytes) {
	return resources <= c->options.bytes / CACHE_RESOURCE_BYTES && bytes <= c->options.bytes;
}

/* Counts what the entry holds now. */
static void account(struct cache *c, struct cache_entry *e) {
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	e->memory = sizeof *e;
	e->descriptors = 0;
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *f = e->resource.representation[i];
		if (f) e->memory += representation_memory(f);
		e->descriptors += f && f->fd != -1 && !f->gzipped; /* else the descriptor is another's */
	}
	c->bytes += e->memory;
	c->descriptors += e->descriptors;
}

/* Returns the next entry of a ring that has to make room, of those of a kind (NULL: all) and without the one that is
 * spared; NULL: there is none. */
static struct cache_entry *victim(struct ring *ring, bool (*of_kind)(const struct cache_entry *),
								  const struct cache_entry *spared) {
	for (unsigned i = 0; i < 2 * ring->length; i++) { /* at the latest in the second round */
		struct cache_entry *e = ring->hand ? ring->hand : TAILQ_FIRST(&ring->entries);
		ring->hand = TAILQ_NEXT(e, age);
		if (e == spared || (of_kind && !of_kind(e))) continue;
		if (!e->asked) return e;
		e->asked = false;
	}
	return NULL;
}

static struct bucket *bucket_of(struct cache *c, uint64_t hash) { return &c->bucket[hash & (c->buckets - 1)]; }

/* Takes the reference over. */
static void insert(struct cache *c, struct cache_entry *e) {
	LIST_INSERT_HEAD(&bucket_of(c, e->hash)->entries, e, chain);
	c->resources++;
	account(c, e);
	e->cached = true;
	struct ring *ring = ring_of(c, e);
	struct cache_entry *other;
	TAILQ_INSERT_TAIL(&ring->entries, e, age);
	ring->length++;
	while (!is_within_limit(c, c->resources, c->bytes) &&
		   ((other = victim(&c->ring[IN_MEMORY], NULL, e)) || (other = victim(&c->ring[OPEN_FILES], NULL, e))))
		drop(c, other);
	while (c->descriptors > c->options.descriptors && (other = victim(&c->ring[OPEN_FILES], NULL, e))) drop(c, other);
}

/* Returns whether nothing has to make room for an entry. */
static bool has_room(const struct cache *c, const struct cache_entry *e) {
	const struct representation *f = e->resource.representation[CODING_IDENTITY];
	return is_within_limit(c, c->resources + 1, c->bytes + sizeof *e + representation_memory(f));
}

/* Returns whether an entry is in memory, and nothing else is to be made of it. */
static bool is_simple(const struct cache_entry *e) {
	const struct resource *r = &e->resource;
	return r->available == 1U << CODING_IDENTITY && !r->producible && r->representation[CODING_IDENTITY]->body;
}

/* Returns whether a new entry is kept. */
static bool keeps(struct cache *c, const struct cache_entry *e) {
	if (!is_simple(e) || has_room(c, e)) return true;
	struct bucket *bucket = bucket_of(c, e->hash);
	const uint32_t mark = (uint32_t)(e->hash >> 32);
	const bool again = bucket->passed == mark;
	bucket->passed = again ? 0 : mark;
	return again;
}

/* Forgets what was found last, if it was not kept. */
static void forget_passing(struct cache *c) {
	struct cache_entry *e = c->passing;
	if (!e) return;
	c->passing = NULL;
	if (e->resource.asked_at) *e->resource.asked_at = NULL;
	entry_release(e);
}

void cache_free(struct cache *c) {
	if (!c) return;
	forget_passing(c);
	for (int i = 0; i < RINGS; i++)
		while (!TAILQ_EMPTY(&c->ring[i].entries)) drop(c, TAILQ_FIRST(&c->ring[i].entries));
	free(c);
}

/* Returns whether dropping the entry would close a file: none of its responses is being sent. */
static bool frees_descriptors(const struct cache_entry *e) {
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *f = e->resource.representation[i];
		if (f && f->fd != -1 && !representation_shared(f)) return true;
	}
	return false;
}

/* Returns whether one more file may be opened, after closing files that only the cache uses. */
static bool may_open(struct cache *c) {
	struct cache_entry *e;
	while (c->open >= c->options.open && (e = victim(&c->ring[OPEN_FILES], frees_descriptors, NULL))) drop(c, e);
	const bool may = c->open < c->options.open;
	static notice_time next;
	if (!may && notice_due(&next))
		notice_line(LEVEL_WARNING,
					"a worker is sending all of the %u files that may be open: others are answered with 503; more "
					"descriptors (ulimit -n) make room for more",
					c->options.open);
	return may;
}

bool cache_lacks_files(const struct cache *c) { return c->open > c->options.open / 4 * 3; }

/* --- the files of a resource --- */

/* Writes the path with the suffix of a coding. */
static const char *coded_path(const struct cache_entry *e, enum coding coding, char *room) {
	*text_copy(text_copy(room, e->path), coding_suffix[coding]) = '\0';
	return room;
}

/* Returns whether other codings of a file are ignored: the file is encoded itself, or might be a private key, which
 * could not be seen in an encoded file. */
static bool ignores_codings(const struct cache_entry *e) {
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++)
		if (slice_ends(e->path, coding_suffix[i])) return true;
	return unserved_is_key(e->path);
}

/* Looks at the file of a coding. Returns 0 or an errno. */
static int look_at(const struct cache *c, const struct cache_entry *e, enum coding coding, struct stat *st) {
	char path[PATH_MAX + SUFFIX_ROOM];
	(void)coded_path(e, coding, path);
	int (*look)(const struct docroot *, const char *, struct stat *) = e->fetched ? docroot_stat : docroot_stat_at_once;
	return look(c->options.docroot, path, st) == -1 ? errno : 0;
}

/* Writes the version of each of its files to version[CODINGS]. Returns 0, or an errno about the file itself. */
static int look(const struct cache *c, const struct cache_entry *e, struct file_version *version) {
	struct names *names = c->options.names;
	struct stat st;
	memset(version, 0, CODINGS * sizeof *version);
	int error = look_at(c, e, CODING_IDENTITY, &st);
	if (!error && !S_ISREG(st.st_mode)) error = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
	if (error && error != ENOENT) return error; /* opening a fifo would wake its writer */
	if (!error) version[CODING_IDENTITY] = file_version_of(&st);
	if (ignores_codings(e) || names_lack_coded(names, e->path)) return error;
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++) {
		char path[PATH_MAX + SUFFIX_ROOM];
		if (names_lack(names, slice_of(coded_path(e, (enum coding)i, path)))) continue;
		int failed = look_at(c, e, (enum coding)i, &st);
		if (!failed) version[i] = file_version_of(&st);
		else if (failed == EINPROGRESS || (error && docroot_error_is_temporary(failed))) return failed;
	}
	return error;
}

/* Returns whether a file beside the original may be sent as that in another coding; reports one that is too old. */
static bool is_usable(const struct cache_entry *e, enum coding coding) {
	const struct file_version *beside = &e->version[coding], *original = &e->version[CODING_IDENTITY];
	char path[PATH_MAX + SUFFIX_ROOM];
	if (!S_ISREG(beside->mode) || !(beside->mode & S_IROTH)) return false;
	if (!original->mode || !file_version_older(beside, original)) return true;
	unserved_report_outdated(coded_path(e, coding, path), e->text, original);
	return false;
}

/* Opens the file of a coding. regular: as for LOAD_UNSEEN. Returns 0 or an errno. */
static int open_file(struct cache *c, struct cache_entry *e, enum coding coding, bool regular) {
	char path[PATH_MAX + SUFFIX_ROOM];
	struct representation *f;
	if (e->version[coding].size > REPRESENTATION_BODY_MAX && !may_open(c)) return EMFILE;
	(void)coded_path(e, coding, path);
	int fd = e->fetched ? docroot_open(c->options.docroot, path, 0) : docroot_open_at_once(c->options.docroot, path, 0);
	if (fd == -1) return errno;
	const enum load how = e->fetched ? LOAD_WAITING : regular ? LOAD_UNSEEN : LOAD_AT_ONCE;
	int error = representation_load(fd, slice_of(path), how, &c->open, &f);
	if (error) return error;
	e->resource.representation[coding] = f;
	e->resource.available |= 1U << coding;
	e->version[coding] = f->version;
	return 0;
}

/* Returns the set of codings that can be generated from the others. */
static unsigned producible(const struct cache *c, const struct resource *r, const char *type) {
	const struct representation *identity = r->representation[CODING_IDENTITY];
	if (!identity) return r->representation[CODING_GZIP] ? 1U << CODING_IDENTITY : 0;
	if (r->representation[CODING_GZIP] || !c->options.gzip_bytes) return 0;
	if (identity->size <= GZIP_LEAST || identity->size > GZIP_MOST) return 0;
	return gzip_worthwhile(slice_of(type)) ? 1U << CODING_GZIP : 0;
}

/* Returns the media type that the name tells, or the content. */
static const char *type_of(struct cache_entry *e) {
	const char *type = mime_type(e->path);
	if (type) return type;
	const struct representation *f = e->resource.representation[CODING_IDENTITY];
	const int text = f ? representation_is_text(f) : 0;
	e->recent |= text == -1; /* asked again soon */
	return text == 1 ? MIME_TEXT : MIME_UNKNOWN;
}

/* Writes the fields of all representations. missed: one could not be opened. */
static int write_all_fields(const struct cache *c, struct cache_entry *e, const struct header_set *headers,
							bool missed) {
	struct resource *r = &e->resource;
	struct field_options o = {.type = type_of(e), .headers = headers, .stands_in = e->stands_in, .error = e->error};
	int error = 0;
	r->producible = producible(c, r, o.type);
	o.varies = missed || (r->available | r->producible) != 1U << CODING_IDENTITY;
	bool restricted = e->restricted || r->realm[0] || r->realm[1];
	if (c->options.cache_control) o.cache_control = freshness(e->path, o.type, restricted, e->stands_in);
	for (int i = 0; i < CODINGS && !error; i++) {
		o.coding = (enum coding)i;
		if (r->representation[i]) error = representation_write_fields(r->representation[i], &o);
	}
	return error;
}

/* Returns whether one of its files may be in the middle of a write, see FILE_VERSION_SETTLES_MS. */
static bool is_unsettled(const struct cache_entry *e) {
	for (int i = 0; i < CODINGS; i++)
		if (file_version_unsettled_ms(&e->version[i]) > 0) return true;
	return false;
}

/* told: by names_tell(). */
static int load(struct cache *c, struct cache_entry *e, const struct header_set *headers, unsigned told) {
	time_t now = time(NULL);
	/* a file alone can be opened without a look, unless it may have to wait for a descriptor */
	e->lately = told & NAMES_LATELY;
	bool alone = (told & ~(unsigned)NAMES_LATELY) == (NAMES_ITSELF | NAMES_REGULAR) && c->open < c->options.open;
	if (!e->fetched && names_elsewhere(c->options.names)) return EINPROGRESS;
	int error = alone ? 0 : look(c, e, e->version);
	if (error && error != ENOENT) return error;
	if (!error && (error = open_file(c, e, CODING_IDENTITY, alone))) return error;
	bool missed = false; /* a file exists, but could not be opened for a temporary reason */
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++) {
		if (!is_usable(e, (enum coding)i)) continue;
		int failed = open_file(c, e, (enum coding)i, false);
		if (failed == EINPROGRESS) return failed;
		if (!failed) error = 0;
		missed |= failed && docroot_error_is_temporary(failed);
		if (error && missed) error = failed; /* there may be something to be sent */
	}
	if (error) return error;
	for (int i = 0; i < CODINGS; i++) e->recent |= e->version[i].mode && file_version_recent(&e->version[i], now);
	e->unsettled = is_unsettled(e);
	e->recent |= missed;
	basic_auth_realms(c->options.auth, e->path, e->lately, e->resource.realm);
	return write_all_fields(c, e, headers, missed);
}

/* told: by names_tell(). */
static int entry_load(struct cache *c, const struct lookup *l, unsigned told, struct cache_entry **result) {
	if (!told) return ENOENT;
	if (l->path.length >= PATH_MAX) return ENAMETOOLONG;
	struct cache_entry *e = malloc(sizeof *e + l->path.length + 1); /* as representation_new() */
	if (!e) return ENOMEM;
	*e = (struct cache_entry){.references = 1,
							  .restricted = l->restricted,
							  .stands_in = l->stands_in,
							  .error = l->error,
							  .fetched = l->fetched,
							  .path = {.at = e->text, .length = l->path.length}};
	*text_copy(e->text, l->path) = '\0';
	int error = load(c, e, l->headers, told);
	e->fetched = true; /* later looks find it in memory */
	if (error == EACCES) unserved_report(c->options.docroot, e->text);
	if (error) entry_release(e);
	else *result = e;
	return error;
}

static int entry_new(struct cache *c, const struct lookup *l, struct cache_entry **result) {
	struct names *names = c->options.names;
	const struct names_told told = names_tell(names, l->path);
	int error = entry_load(c, l, told.what, result);
	if (!(told.what & NAMES_LATELY)) return error;
	/* what was known of its directory holds if the file is the one that was there, and not a recent one */
	struct cache_entry *e = error ? NULL : *result;
	if (e ? !e->recent && names_told_of(names, e->path, &told, &e->version[CODING_IDENTITY]) : error != ENOENT)
		return error;
	if (e) entry_release(e);
	(void)names_lack(names, l->path); /* looks at it again */
	return entry_load(c, l, names_tell(names, l->path).what, result);
}

/* --- finding --- */

/* Returns whether its files are as they were when it was loaded. */
static bool is_current(const struct cache *c, struct cache_entry *e, int64_t now_ms) {
	struct file_version now[CODINGS];
	if (e->recent) return false;
	int error = look(c, e, now);
	if (error && error != ENOENT) return false;
	for (int i = 0; i < CODINGS; i++)
		if (!file_version_same(&now[i], &e->version[i])) return false;
	struct realm *realm[REALMS_OF_PATH];
	bool same = true;
	basic_auth_realms(c->options.auth, e->path, false, realm);
	for (int i = 0; i < REALMS_OF_PATH; i++) {
		same &= !realm[i] == !e->resource.realm[i];
		realm_release(e->resource.realm[i]);
		e->resource.realm[i] = realm[i];
	}
	e->checked_ms = now_ms;
	return same;
}

static void note_use(struct cache_entry *e, int64_t now_ms) {
	e->asked = true;
	e->used_ms = now_ms;
}

int cache_find(struct cache *c, const struct lookup *l, int64_t now_ms, struct resource **resource) {
	struct slice path = l->path;
	uint64_t headers = l->headers ? l->headers->id : 0, hash = hash_octets(c->seed + headers, path);
	forget_passing(c);
	struct cache_entry *e = LIST_FIRST(&bucket_of(c, hash)->entries);
	while (e && !(e->hash == hash && e->headers == headers && e->stands_in == l->stands_in && e->error == l->error &&
				  slice_equal(e->path, path)))
		e = LIST_NEXT(e, chain);
	bool check = e && now_ms - e->checked_ms >= CACHE_CHECK_MS;
	if (e && ((e->unsettled && !is_unsettled(e)) || e->restricted != l->restricted ||
			  (check && !is_current(c, e, now_ms)))) {
		drop(c, e);
		e = NULL;
	}
	if (!e) {
		int error = entry_new(c, l, &e);
		if (error != EINPROGRESS) count_one(error ? COUNT_CACHE_ABSENT : COUNT_CACHE_LOADED);
		if (error) return error;
		e->hash = hash;
		e->headers = headers;
		e->checked_ms = e->lately ? now_ms - CACHE_CHECK_MS : now_ms; /* it is checked when it is found next */
		if (keeps(c, e)) insert(c, e);
		else c->passing = e;
		e->used_ms = now_ms;
	} else {
		if (!l->again) count_one(COUNT_CACHE_HITS);
		note_use(e, now_ms);
	}
	e->resource.until_ms = e->unsettled ? 0 : e->checked_ms + CACHE_CHECK_MS;
	*resource = &e->resource;
	return 0;
}

void cache_found(struct resource *resource, int64_t now_ms) {
	count_one(COUNT_CACHE_HITS);
	note_use((struct cache_entry *)resource, now_ms);
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
		if (now_ms - e->used_ms >= CACHE_UNUSED_MS || fields_changed || is_gone(e)) drop(c, e);
	}
}

/* --- jobs --- */

struct cache_job {
	struct job job;
	enum job_kind kind;
	struct cache *cache;
	struct cache_entry *entry;
	struct representation *from;
	char *body;
	uint64_t size;
	unsigned char digest[DIGEST_LENGTH];
	int error;
};

/* Starts a job with references to its entry and representation. Returns NULL: not now. */
static struct job *start(struct jobs *jobs, struct job job, enum job_kind kind, struct cache *c, struct cache_entry *e,
						 struct representation *from) {
	struct cache_job *j = malloc(sizeof *j);
	if (!j) return NULL;
	*j = (struct cache_job){.job = job, .kind = kind, .cache = c, .entry = e, .from = from};
	if (!jobs_add(jobs, &j->job)) {
		free(j);
		return NULL;
	}
	c->pending[kind] += from->size;
	representation_retain(from);
	e->references++;
	e->job[kind] = j;
	return &j->job;
}

static void end(struct cache_job *j) {
	j->cache->pending[j->kind] -= j->from->size;
	j->entry->job[j->kind] = NULL;
	free(j->body);
	representation_release(j->from);
	entry_release(j->entry);
	free(j);
}

static bool is_compressed(const struct cache_entry *e) { return e->compressed; }

static bool compressed_too_much(const struct cache *c) { return c->compressed > c->options.gzip_bytes; }

/* Forgets compressed bodies until the others are within the limit; the newest last. */
static void limit_compressed(struct cache *c, struct cache_entry *newest) {
	struct cache_entry *e;
	for (int i = 0; i < RINGS; i++)
		while (compressed_too_much(c) && (e = victim(&c->ring[i], is_compressed, newest))) forget_compressed(e);
	if (compressed_too_much(c)) forget_compressed(newest);
}

/* Returns the representation from which a coding is generated. */
static struct representation *source(const struct resource *r, enum coding coding) {
	return r->representation[coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP];
}

static void convert(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	struct gzip_bytes stored = representation_stored(j->from);
	if (j->kind == COMPRESS) j->error = gzip_compress(&stored, stop, &j->body, &j->size);
	else j->error = gzip_measure(&stored, stop, &j->size);
}

static void converted(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	struct cache *c = j->cache;
	struct resource *r = &j->entry->resource;
	struct representation *f = NULL;
	bool compress = j->kind == COMPRESS, fits = !compress || j->size <= c->options.gzip_bytes;
	enum coding coding = compress ? CODING_GZIP : CODING_IDENTITY;
	if (!job->ran) j->error = ECANCELED;
	if (!j->error && j->entry->cached && fits && !representation_changed(j->from)) {
		struct representation *from = source(r, coding); /* it may have got an entity-tag meanwhile */
		f = compress ? representation_gzipped(from, j->body, j->size, &c->compressed)
					 : representation_gunzipped(from, j->size);
		j->body = NULL;
	}
	/* else it is tried again: there was no memory, or the file could not be read */
	if (f || !fits || j->error == EFBIG || j->error == EILSEQ) r->producible &= ~(1U << coding);
	if (f) {
		r->representation[coding] = f;
		r->available |= 1U << coding;
		j->entry->compressed = compress;
		if (compress) limit_compressed(c, j->entry);
	}
	end(j);
}

struct job *cache_convert(struct cache *c, struct resource *r, enum coding coding) {
	struct cache_entry *e = (struct cache_entry *)r;
	struct representation *from = source(r, coding);
	enum job_kind kind = coding == CODING_GZIP ? COMPRESS : UNPACK;
	const struct job job = {.run = convert, .finish = converted};
	if (e->job[kind]) return &e->job[kind]->job;
	if (kind == UNPACK) return start(c->options.unpacking, job, kind, c, e, from);
	/* no request waits for long: while much is to be compressed, further files are sent as they are */
	if (c->pending[kind] && c->pending[kind] + from->size > CACHE_COMPRESSING_MAX) return NULL;
	if (c->compressed > c->options.gzip_bytes) return NULL; /* still being sent */
	return start(c->options.compressing, job, kind, c, e, from);
}

static void hash(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	j->error = digest_compute(j->from->fd, j->from->size, stop, j->digest);
}

/* Replaces a representation by one with its entity-tag, and forgets what was generated from it. */
static void tag(struct cache_job *j) {
	struct resource *r = &j->entry->resource;
	struct representation *tagged = representation_tagged(j->from, j->digest);
	enum coding coding = j->from->coding;
	if (!tagged) return;
	representation_release(r->representation[coding]);
	r->representation[coding] = tagged;
	const struct representation *identity = r->representation[CODING_IDENTITY];
	if (coding == CODING_IDENTITY && j->entry->compressed) forget_compressed(j->entry);
	if (coding == CODING_GZIP && identity && identity->gzipped) forget_produced(r, CODING_IDENTITY);
	account(j->cache, j->entry);
}

static void hashed(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	bool current = j->entry->cached && j->entry->resource.representation[j->from->coding] == j->from;
	if (job->ran && !j->error && current && !representation_changed(j->from)) tag(j);
	end(j);
}

struct job *cache_hash(struct cache *c, struct resource *r, enum coding coding, bool needed) {
	struct cache_entry *e = (struct cache_entry *)r;
	struct representation *f = r->representation[coding];
	if (f->fd == -1 || f->gzipped || f->validators.etag.at) return NULL;
	bool soon = f->size <= DIGEST_SOON;
	struct jobs *jobs = soon ? c->options.hashing : c->options.hashing_large;
	if (!e->job[HASH]) (void)start(jobs, (struct job){.run = hash, .finish = hashed}, HASH, c, e, f);
	if (!e->job[HASH] || e->job[HASH]->from != f) return NULL;
	return soon || (needed && c->pending[HASH] <= CACHE_HASHING_MAX) ? &e->job[HASH]->job : NULL;
}
