/* cache.c - see cache.h. A hash table with chains and a list from the most to the least recently used. Paths
 * without a file are not remembered, so that no client can fill the table with them. */
#include "gatling/site/cache.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "gatling/base/gzip.h"
#include "gatling/base/hash.h"
#include "gatling/base/unserved.h"
#include "gatling/http/freshness.h"
#include "gatling/http/media_type.h"
#include "gatling/site/digest.h"

enum { BUCKETS = 8192, SUFFIX_ROOM = 8 };

struct cache_entry {
	struct resource resource; /* first: a resource is its entry */
	unsigned references;      /* of the cache and of jobs */
	bool cached;              /* the cache has a reference */
	bool recent;              /* see FILE_VERSION_RECENT_S; or a file could not be opened for a temporary reason */
	bool compressed;          /* its gzip was compressed here */
	bool restricted, stands_in, error; /* of struct lookup */
	uint64_t hash, headers;            /* headers: the id of the set, 0 for none */
	int64_t checked_ms, used_ms;
	size_t memory;
	unsigned descriptors;
	struct file_version version[CODINGS]; /* of the file and those beside it */
	struct conversion *conversion;
	struct hash_job *hashing;
	struct cache_entry *chain;
	struct cache_entry *newer, *older;
	size_t path_length;
	char path[];
};

struct cache {
	struct cache_options options;
	uint64_t seed;
	uint64_t compressing, hashing; /* bytes of the files of jobs */
	size_t compressed;             /* bytes of memory with compressed bodies, also to be sent */
	unsigned open;                 /* files with a descriptor, also to be sent */
	unsigned resources, descriptors;
	size_t bytes;
	int64_t tidied_ms;
	struct cache_entry *newest, *oldest;
	struct cache_entry *bucket[BUCKETS];
};

struct cache *cache_new(const struct cache_options *options) {
	struct cache *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->options = *options;
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

static void newest_link(struct cache *c, struct cache_entry *e) {
	e->newer = NULL;
	e->older = c->newest;
	if (c->newest) c->newest->newer = e;
	else c->oldest = e;
	c->newest = e;
}

static void age_unlink(struct cache *c, struct cache_entry *e) {
	if (e->newer) e->newer->older = e->older;
	else c->newest = e->older;
	if (e->older) e->older->newer = e->newer;
	else c->oldest = e->newer;
}

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

static void drop(struct cache *c, struct cache_entry *e) {
	struct cache_entry **link = &c->bucket[e->hash % BUCKETS];
	while (*link != e) link = &(*link)->chain;
	*link = e->chain;
	age_unlink(c, e);
	if (e->compressed) forget_compressed(e);
	c->resources--;
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	e->cached = false;
	entry_release(e);
}

void cache_drop(struct cache *c, struct resource *resource) { drop(c, (struct cache_entry *)resource); }

static bool over_limit(const struct cache *c) {
	return c->resources > CACHE_RESOURCES_MAX || c->bytes > CACHE_BYTES_MAX || c->descriptors > c->options.descriptors;
}

/* Takes the reference over. */
static void insert(struct cache *c, struct cache_entry *e) {
	e->chain = c->bucket[e->hash % BUCKETS];
	c->bucket[e->hash % BUCKETS] = e;
	newest_link(c, e);
	c->resources++;
	c->bytes += e->memory;
	c->descriptors += e->descriptors;
	e->cached = true;
	while (c->oldest != c->newest && over_limit(c)) {
		assert(!c->oldest->older);
		drop(c, c->oldest);
	}
}

void cache_free(struct cache *c) {
	if (!c) return;
	while (c->oldest) drop(c, c->oldest);
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
	for (struct cache_entry *e = c->oldest, *newer; e && c->open >= c->options.open; e = newer) {
		newer = e->newer;
		if (frees_descriptors(e)) drop(c, e);
	}
	return c->open < c->options.open;
}

/* --- the files of a resource --- */

static struct slice path_of(const struct cache_entry *e) {
	return (struct slice){.at = e->path, .length = e->path_length};
}

/* Writes the path with the suffix of a coding. */
static const char *coded_path(const struct cache_entry *e, enum coding coding, char *room) {
	memcpy(room, e->path, e->path_length);
	memcpy(room + e->path_length, coding_suffix[coding].at, coding_suffix[coding].length + 1);
	return room;
}

/* Returns whether other codings of a file are ignored: the file is encoded itself, or might be a private key, which
 * could not be seen in an encoded file. */
static bool ignores_codings(const struct cache_entry *e) {
	const struct slice path = path_of(e);
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++)
		if (slice_ends(path, coding_suffix[i])) return true;
	return unserved_is_key(path);
}

/* Writes the version of each of its files to version[CODINGS]. Returns 0, or an errno about the file itself. */
static int look(const struct cache *c, const struct cache_entry *e, struct file_version *version) {
	char path[PATH_MAX + SUFFIX_ROOM];
	int error = 0, last = ignores_codings(e) ? CODING_IDENTITY : CODINGS - 1;
	memset(version, 0, CODINGS * sizeof *version);
	for (int i = CODING_IDENTITY; i <= last; i++) {
		struct stat st;
		bool exists = docroot_stat(c->options.docroot, coded_path(e, (enum coding)i, path), &st) == 0;
		if (exists) version[i] = file_version_of(&st);
		if (i == CODING_IDENTITY && !exists) error = errno;
		if (i == CODING_IDENTITY && exists && S_ISDIR(st.st_mode)) error = EISDIR;
		if (i == CODING_IDENTITY && exists && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) error = EACCES;
		if (error && error != ENOENT) return error; /* opening a fifo would wake its writer */
	}
	return error;
}

/* Returns whether a file beside the original may be sent as that in another coding; reports one that is too old. */
static bool is_usable(const struct cache_entry *e, enum coding coding) {
	const struct file_version *beside = &e->version[coding], *original = &e->version[CODING_IDENTITY];
	char path[PATH_MAX + SUFFIX_ROOM];
	if (!S_ISREG(beside->mode) || !(beside->mode & S_IROTH)) return false;
	if (!original->mode || !file_version_older(beside, original)) return true;
	unserved_report_outdated(coded_path(e, coding, path), e->path, original);
	return false;
}

/* Opens the file of a coding. Returns 0 or an errno. */
static int open_file(struct cache *c, struct cache_entry *e, enum coding coding) {
	char path[PATH_MAX + SUFFIX_ROOM];
	struct representation *f;
	if (e->version[coding].size > REPRESENTATION_BODY_MAX && !may_open(c)) return EMFILE;
	int fd = docroot_open(c->options.docroot, coded_path(e, coding, path), 0);
	if (fd == -1) return errno;
	int error = representation_load(fd, slice_of(path), &c->open, &f);
	if (error) return error;
	e->resource.representation[coding] = f;
	e->resource.available |= 1U << coding;
	e->version[coding] = *representation_version(f);
	return 0;
}

/* Counts what the entry holds. */
static void account(struct cache_entry *e) {
	e->memory = sizeof *e;
	e->descriptors = 0;
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *f = e->resource.representation[i];
		if (f) e->memory += representation_memory(f);
		e->descriptors += f && f->fd != -1 && !f->gzipped; /* else the descriptor is another's */
	}
}

/* Returns the set of codings that can be generated from the others. */
static unsigned producible(const struct cache *c, const struct resource *r, const char *type) {
	const struct representation *identity = r->representation[CODING_IDENTITY];
	if (!identity) return r->representation[CODING_GZIP] ? 1U << CODING_IDENTITY : 0;
	if (r->representation[CODING_GZIP] || !c->options.gzip_bytes || !gzip_worthwhile(type)) return 0;
	return identity->size > GZIP_LEAST && identity->size <= GZIP_MOST ? 1U << CODING_GZIP : 0;
}

/* Returns the media type that the name tells, or the content. */
static const char *type_of(const struct cache_entry *e) {
	const char *type = mime_type(path_of(e));
	if (type) return type;
	const struct representation *f = e->resource.representation[CODING_IDENTITY];
	return f && representation_is_text(f) ? MIME_TEXT : MIME_UNKNOWN;
}

/* Writes the fields of all representations. missed: one could not be opened. */
static int write_fields(const struct cache *c, struct cache_entry *e, const struct header_set *headers, bool missed) {
	struct resource *r = &e->resource;
	struct field_options o = {.type = type_of(e), .headers = headers, .stands_in = e->stands_in, .error = e->error};
	int error = 0;
	r->producible = producible(c, r, o.type);
	o.varies = missed || (r->available | r->producible) != 1U << CODING_IDENTITY;
	bool restricted = e->restricted || r->realm[0] || r->realm[1];
	if (c->options.cache_control) o.cache_control = freshness(path_of(e), o.type, restricted, e->stands_in);
	for (int i = 0; i < CODINGS && !error; i++) {
		o.coding = (enum coding)i;
		if (r->representation[i]) error = representation_write_fields(r->representation[i], &o);
	}
	return error;
}

static int load(struct cache *c, struct cache_entry *e, const struct header_set *headers) {
	time_t now = time(NULL);
	int error = look(c, e, e->version);
	if (error && error != ENOENT) return error;
	if (!error && (error = open_file(c, e, CODING_IDENTITY))) return error;
	bool missed = false; /* a file exists, but could not be opened for a temporary reason */
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++) {
		if (!is_usable(e, (enum coding)i)) continue;
		int failed = open_file(c, e, (enum coding)i);
		if (!failed) error = 0;
		missed |= failed && docroot_error_is_temporary(failed);
	}
	if (error) return error;
	for (int i = 0; i < CODINGS; i++) e->recent |= e->version[i].mode && file_version_recent(&e->version[i], now);
	e->recent |= missed;
	basic_auth_realms(c->options.auth, path_of(e), e->resource.realm);
	error = write_fields(c, e, headers, missed);
	account(e);
	return error;
}

static int entry_new(struct cache *c, const struct lookup *l, struct cache_entry **result) {
	struct cache_entry *e = calloc(1, sizeof *e + l->path.length + 1);
	if (!e) return ENOMEM;
	e->references = 1;
	e->restricted = l->restricted;
	e->stands_in = l->stands_in;
	e->error = l->error;
	memcpy(e->path, l->path.at, l->path.length);
	e->path_length = l->path.length;
	int error = load(c, e, l->headers);
	if (error == EACCES) unserved_report(c->options.docroot, e->path);
	if (error) entry_release(e);
	else *result = e;
	return error;
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
	basic_auth_realms(c->options.auth, path_of(e), realm);
	for (int i = 0; i < REALMS_OF_PATH; i++) {
		same &= !realm[i] == !e->resource.realm[i];
		realm_release(e->resource.realm[i]);
		e->resource.realm[i] = realm[i];
	}
	e->checked_ms = now_ms;
	return same;
}

int cache_find(struct cache *c, const struct lookup *l, int64_t now_ms, struct resource **resource) {
	struct slice path = l->path;
	uint64_t headers = l->headers ? l->headers->id : 0, hash = hash_octets(c->seed + headers, path);
	struct cache_entry *e = c->bucket[hash % BUCKETS];
	while (e && !(e->hash == hash && e->headers == headers && e->stands_in == l->stands_in && e->error == l->error &&
				  slice_equal(path_of(e), path)))
		e = e->chain;
	bool check = e && now_ms - e->checked_ms >= CACHE_CHECK_MS;
	if (e && (e->restricted != l->restricted || (check && !is_current(c, e, now_ms)))) {
		drop(c, e);
		e = NULL;
	}
	if (!e) {
		int error = path.length < PATH_MAX ? entry_new(c, l, &e) : ENAMETOOLONG;
		if (error) return error;
		e->hash = hash;
		e->headers = headers;
		e->checked_ms = now_ms;
		insert(c, e);
	} else if (c->newest != e) {
		age_unlink(c, e);
		newest_link(c, e);
	}
	e->used_ms = now_ms;
	*resource = &e->resource;
	return 0;
}

/* --- closing files --- */

static bool is_gone(const struct cache_entry *e) {
	for (int i = 0; i < CODINGS; i++)
		if (e->resource.representation[i] && representation_gone(e->resource.representation[i])) return true;
	return false;
}

int cache_due(const struct cache *c, int64_t now_ms) {
	if (!c->descriptors) return -1;
	int64_t left = c->tidied_ms + CACHE_TIDY_MS - now_ms;
	return left > 0 ? (int)left : 0;
}

void cache_tidy(struct cache *c, int64_t now_ms, bool fields_changed) {
	c->tidied_ms = now_ms;
	for (struct cache_entry *e = c->oldest, *newer; e; e = newer) {
		newer = e->newer;
		if (!e->descriptors) continue;
		if (now_ms - e->used_ms >= CACHE_UNUSED_MS || fields_changed || is_gone(e)) drop(c, e);
	}
}

/* --- conversions --- */

struct conversion {
	struct job job;
	struct cache *cache;
	struct cache_entry *entry;
	struct representation *from;
	enum coding coding; /* into which */
	char *body;
	uint64_t size;
	int error;
};

/* Forgets the least recently used compressed bodies until the others are within the limit. */
static void limit_compressed(struct cache *c) {
	for (struct cache_entry *e = c->oldest; e && c->compressed > c->options.gzip_bytes; e = e->newer)
		if (e->compressed) forget_compressed(e);
}

/* Returns the representation from which a coding is generated. */
static struct representation *source(const struct resource *r, enum coding coding) {
	return r->representation[coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP];
}

static void convert(struct job *job, const atomic_bool *stop) {
	struct conversion *v = (struct conversion *)job;
	struct gzip_bytes stored = representation_stored(v->from);
	if (v->coding == CODING_GZIP) v->error = gzip_compress(&stored, stop, &v->body, &v->size);
	else v->error = gzip_measure(&stored, stop, &v->size);
}

static void converted(struct job *job) {
	struct conversion *v = (struct conversion *)job;
	struct cache *c = v->cache;
	struct cache_entry *e = v->entry;
	struct resource *r = &e->resource;
	struct representation *f = NULL;
	bool compress = v->coding == CODING_GZIP;
	e->conversion = NULL;
	if (compress) c->compressing -= v->from->size;
	if (!job->ran) v->error = ECANCELED;
	if (v->error != ECANCELED) r->producible &= ~(1U << v->coding);
	bool fits = !compress || v->size <= c->options.gzip_bytes;
	if (!v->error && e->cached && fits && !representation_changed(v->from)) {
		struct representation *from = source(r, v->coding); /* it may have got an entity-tag meanwhile */
		f = compress ? representation_gzipped(from, v->body, v->size, &c->compressed)
					 : representation_gunzipped(from, v->size);
		v->body = NULL;
	}
	if (f) {
		r->representation[v->coding] = f;
		r->available |= 1U << v->coding;
		e->compressed = compress;
		limit_compressed(c);
	}
	free(v->body);
	representation_release(v->from);
	entry_release(e);
	free(v);
}

struct job *cache_convert(struct cache *c, struct resource *r, enum coding coding) {
	struct cache_entry *e = (struct cache_entry *)r;
	struct representation *from = source(r, coding);
	bool compress = coding == CODING_GZIP;
	if (e->conversion) return &e->conversion->job;
	/* no request waits for long: while much is to be compressed, further files are sent as they are */
	if (compress && c->compressing && c->compressing + from->size > CACHE_COMPRESSING_MAX) return NULL;
	if (compress && c->compressed > c->options.gzip_bytes) return NULL; /* still being sent */
	struct conversion *v = calloc(1, sizeof *v);
	if (!v) return NULL;
	*v = (struct conversion){
		.job = {.run = convert, .finish = converted}, .cache = c, .entry = e, .from = from, .coding = coding};
	if (!jobs_add(compress ? c->options.compressing : c->options.unpacking, &v->job)) {
		free(v);
		return NULL;
	}
	if (compress) c->compressing += from->size;
	representation_retain(from);
	e->references++;
	e->conversion = v;
	return &v->job;
}

/* --- hashes --- */

struct hash_job {
	struct job job;
	struct cache_entry *entry;
	struct cache *cache;
	struct representation *file;
	enum coding coding;
	unsigned char digest[DIGEST_LENGTH];
	int error;
};

static void hash(struct job *job, const atomic_bool *stop) {
	struct hash_job *h = (struct hash_job *)job;
	h->error = digest_compute(h->file->fd, h->file->size, stop, h->digest);
}

/* Replaces a representation by one with its entity-tag, and forgets what was generated from it. */
static void tag(struct cache *c, struct cache_entry *e, struct hash_job *h) {
	struct resource *r = &e->resource;
	struct representation *tagged = representation_tagged(h->file, h->digest);
	if (!tagged) return;
	representation_release(r->representation[h->coding]);
	r->representation[h->coding] = tagged;
	const struct representation *identity = r->representation[CODING_IDENTITY];
	if (h->coding == CODING_IDENTITY && e->compressed) forget_compressed(e);
	if (h->coding == CODING_GZIP && identity && identity->gzipped) forget_produced(r, CODING_IDENTITY);
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	account(e);
	c->bytes += e->memory;
	c->descriptors += e->descriptors;
}

static void hashed(struct job *job) {
	struct hash_job *h = (struct hash_job *)job;
	struct cache_entry *e = h->entry;
	bool good = job->ran && !h->error && e->cached && e->resource.representation[h->coding] == h->file &&
				!representation_changed(h->file);
	e->hashing = NULL;
	h->cache->hashing -= h->file->size;
	if (good) tag(h->cache, e, h);
	representation_release(h->file);
	entry_release(e);
	free(h);
}

bool cache_hashes_soon(const struct cache *c, const struct representation *f, bool wanted) {
	return f->size <= DIGEST_SOON || (wanted && c->hashing <= CACHE_HASHING_MAX);
}

struct job *cache_hash(struct cache *c, struct resource *r, enum coding coding) {
	struct cache_entry *e = (struct cache_entry *)r;
	struct representation *f = r->representation[coding];
	if (e->hashing) return e->hashing->coding == coding ? &e->hashing->job : NULL;
	if (!f || f->fd == -1 || f->gzipped || f->validators.etag.at) return NULL;
	struct hash_job *h = calloc(1, sizeof *h);
	if (!h) return NULL;
	*h = (struct hash_job){.job = {.run = hash, .finish = hashed}, .entry = e, .cache = c, .file = f, .coding = coding};
	if (!jobs_add(f->size <= DIGEST_SOON ? c->options.hashing : c->options.hashing_large, &h->job)) {
		free(h);
		return NULL;
	}
	c->hashing += f->size;
	representation_retain(f);
	e->references++;
	e->hashing = h;
	return &h->job;
}
