/* cache.c - see cache.h. A hash table with chains and a list from the most to the least recently used. What does not
 * exist is not remembered: nobody can fill the table with what is not there. */
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
	unsigned references;      /* the cache's, and that of what is being made */
	bool kept;                /* by the cache, still */
	bool recent;              /* see FILE_VERSION_RECENT_S; or something of it could not be opened */
	bool packed;              /* the gzip has been made here */
	bool restricted;          /* these are of struct lookup */
	bool stands_in, error;
	uint64_t hash, headers; /* headers: the id of the set, 0 for none */
	int64_t checked_ms, used_ms;
	size_t memory;
	unsigned descriptors;
	struct file_version identity[CODINGS]; /* of the file and those beside it; all zero: there is none */
	struct conversion *making;
	struct hash_job *hashing;
	struct cache_entry *chain;
	struct cache_entry *newer, *older;
	size_t path_length;
	char path[];
};

struct cache {
	struct cache_options options;
	uint64_t seed, making;
	size_t packed; /* bytes of what has been compressed, until the last who sends it is done */
	unsigned resources, descriptors;
	uint64_t hashing; /* bytes of files whose content is to be found out */
	unsigned open;    /* files with a descriptor, until the last who sends it is done */
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

/* What was compressed here is gone, and may be made again. */
static void unpack(struct cache_entry *e) {
	struct representation **gzip = &e->resource.representation[CODING_GZIP];
	representation_release(*gzip);
	*gzip = NULL;
	e->packed = false;
	e->resource.available &= ~(1U << CODING_GZIP);
	e->resource.producible |= 1U << CODING_GZIP;
}

static void drop(struct cache *c, struct cache_entry *e) {
	struct cache_entry **link = &c->bucket[e->hash % BUCKETS];
	while (*link != e) link = &(*link)->chain;
	*link = e->chain;
	age_unlink(c, e);
	if (e->packed) unpack(e);
	c->resources--;
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	e->kept = false;
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
	e->kept = true;
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

/* Whether to drop it would close a file: nobody sends it. */
static bool frees_descriptors(const struct cache_entry *e) {
	bool frees = false;
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *f = e->resource.representation[i];
		if (f && f->fd != -1) frees |= !representation_shared(f);
	}
	return frees;
}

/* Whether one more file may be opened: what only the cache keeps open makes room. */
static bool may_open(struct cache *c) {
	for (struct cache_entry *e = c->oldest, *newer; e && c->open >= c->options.open; e = newer) {
		newer = e->newer;
		if (frees_descriptors(e)) drop(c, e);
	}
	return c->open < c->options.open;
}

/* --- the files of a resource --- */

/* The path of the file beside it with the suffix of a coding. */
static const char *path_of(const struct cache_entry *e, enum coding coding, char *room) {
	memcpy(room, e->path, e->path_length);
	memcpy(room + e->path_length, coding_suffix[coding].at, coding_suffix[coding].length + 1);
	return room;
}

/* What is packed already is not looked for packed once more, nor what might be a private key: nobody could see that. */
static bool stands_alone(const struct cache_entry *e) {
	const struct slice path = {.at = e->path, .length = e->path_length};
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++)
		if (slice_ends(path, coding_suffix[i])) return true;
	return unserved_is_key(path);
}

/* What stat(2) says of each of its files. 0, or what is wrong with the file itself. */
static int look(const struct cache *c, const struct cache_entry *e, struct file_version *identity) {
	char path[PATH_MAX + SUFFIX_ROOM];
	int error = 0, last = stands_alone(e) ? CODING_IDENTITY : CODINGS - 1;
	memset(identity, 0, CODINGS * sizeof *identity);
	for (int i = CODING_IDENTITY; i <= last; i++) {
		struct stat st;
		bool there = docroot_stat(c->options.docroot, path_of(e, (enum coding)i, path), &st) == 0;
		if (there) identity[i] = file_version_of(&st);
		if (i == CODING_IDENTITY && !there) error = errno;
		if (i == CODING_IDENTITY && there && S_ISDIR(st.st_mode)) error = EISDIR;
		if (i == CODING_IDENTITY && there && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) error = EACCES;
		if (error && error != ENOENT) return error; /* to open a fifo would wake its writer */
	}
	return error;
}

/* Whether what is beside the file is the same in another coding. */
static bool usable(const struct cache_entry *e, enum coding coding) {
	const struct file_version *beside = &e->identity[coding], *original = &e->identity[CODING_IDENTITY];
	char path[PATH_MAX + SUFFIX_ROOM];
	if (!S_ISREG(beside->mode) || !(beside->mode & S_IROTH)) return false;
	if (!original->mode || !file_version_older(beside, original)) return true;
	unserved_report_outdated(path_of(e, coding, path), e->path, original);
	return false;
}

static int open_as(struct cache *c, struct cache_entry *e, enum coding coding) {
	char path[PATH_MAX + SUFFIX_ROOM];
	struct representation *file;
	if (e->identity[coding].size > REPRESENTATION_BODY_MAX && !may_open(c)) return EMFILE;
	int fd = docroot_open(c->options.docroot, path_of(e, coding, path), 0);
	if (fd == -1) return errno;
	int error = representation_load(fd, (struct slice){.at = path, .length = strlen(path)}, &c->open, &file);
	if (error) return error;
	e->resource.representation[coding] = file;
	e->resource.available |= 1U << coding;
	e->identity[coding] = *representation_version(file);
	return 0;
}

static void account(struct cache_entry *e) {
	e->memory = sizeof *e;
	e->descriptors = 0;
	for (int i = 0; i < CODINGS; i++) {
		const struct representation *f = e->resource.representation[i];
		if (f) e->memory += representation_memory(f);
		e->descriptors += f && f->fd != -1 && !f->gzipped; /* that would be another's */
	}
}

/* Which of its codings can be made from what is there. */
static unsigned makeable(const struct cache *c, const struct resource *r, const char *type) {
	const struct representation *identity = r->representation[CODING_IDENTITY];
	if (!identity) return r->representation[CODING_GZIP] ? 1U << CODING_IDENTITY : 0;
	if (r->representation[CODING_GZIP] || !c->options.gzip_bytes || !gzip_worthwhile(type)) return 0;
	return identity->size > GZIP_LEAST && identity->size <= GZIP_MOST ? 1U << CODING_GZIP : 0;
}

/* The media type: what the name does not tell, the content may. */
static const char *type_of(const struct cache_entry *e) {
	const char *type = mime_type((struct slice){.at = e->path, .length = e->path_length});
	if (type) return type;
	const struct representation *f = e->resource.representation[CODING_IDENTITY];
	return f && representation_is_text(f) ? MIME_TEXT : MIME_UNKNOWN;
}

static int dress(const struct cache *c, struct cache_entry *e, const struct header_set *headers, bool missed) {
	struct resource *r = &e->resource;
	struct slice path = {.at = e->path, .length = e->path_length};
	struct field_options d = {.type = type_of(e), .headers = headers};
	int error = 0;
	r->producible = makeable(c, r, d.type);
	d.varies = missed || (r->available | r->producible) != 1U << CODING_IDENTITY;
	bool restricted = e->restricted || r->realm[0] || r->realm[1];
	if (c->options.cache_control) d.cache_control = freshness(path, d.type, restricted, e->stands_in);
	d.stands_in = e->stands_in;
	d.error = e->error;
	for (int i = 0; i < CODINGS && !error; i++) {
		d.coding = (enum coding)i;
		if (r->representation[i]) error = representation_dress(r->representation[i], &d);
	}
	return error;
}

static void find_realms(const struct cache *c, const struct cache_entry *e, struct realm **realm) {
	basic_auth_realms(c->options.auth, (struct slice){.at = e->path, .length = e->path_length}, realm);
}

static int load(struct cache *c, struct cache_entry *e, const struct header_set *headers) {
	time_t now = time(NULL);
	int error = look(c, e, e->identity);
	if (error && error != ENOENT) return error;
	if (!error && (error = open_as(c, e, CODING_IDENTITY))) return error;
	bool missed = false; /* one that is there, but could not be opened just now */
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++) {
		if (!usable(e, (enum coding)i)) continue;
		int failed = open_as(c, e, (enum coding)i);
		if (!failed) error = 0;
		missed |= failed && docroot_error_is_temporary(failed);
	}
	if (error) return error;
	for (int i = 0; i < CODINGS; i++) e->recent |= e->identity[i].mode && file_version_recent(&e->identity[i], now);
	e->recent |= missed;
	find_realms(c, e, e->resource.realm);
	error = dress(c, e, headers, missed);
	account(e);
	return error;
}

static int entry_new(struct cache *c, const struct lookup *wanted, struct cache_entry **result) {
	struct cache_entry *e = calloc(1, sizeof *e + wanted->path.length + 1);
	if (!e) return ENOMEM;
	e->references = 1;
	e->restricted = wanted->restricted;
	e->stands_in = wanted->stands_in;
	e->error = wanted->error;
	memcpy(e->path, wanted->path.at, wanted->path.length);
	e->path_length = wanted->path.length;
	int error = load(c, e, wanted->headers);
	if (error == EACCES) unserved_report(c->options.docroot, e->path);
	if (error) entry_release(e);
	else *result = e;
	return error;
}

/* --- finding --- */

/* Whether its files are as they were when it was loaded. */
static bool current(const struct cache *c, struct cache_entry *e, int64_t now_ms) {
	struct file_version now[CODINGS];
	if (e->recent) return false;
	int error = look(c, e, now);
	if (error && error != ENOENT) return false;
	for (int i = 0; i < CODINGS; i++)
		if (!file_version_same(&now[i], &e->identity[i])) return false;
	struct realm *realm[REALMS_OF_PATH];
	bool same = true;
	find_realms(c, e, realm);
	for (int i = 0; i < REALMS_OF_PATH; i++) {
		same &= !realm[i] == !e->resource.realm[i];
		realm_release(e->resource.realm[i]);
		e->resource.realm[i] = realm[i];
	}
	e->checked_ms = now_ms;
	return same;
}

int cache_find(struct cache *c, const struct lookup *wanted, int64_t now_ms, struct resource **resource) {
	struct slice path = wanted->path;
	uint64_t headers = wanted->headers ? wanted->headers->id : 0, hash = hash_octets(c->seed + headers, path);
	struct cache_entry *e = c->bucket[hash % BUCKETS];
	while (e &&
		   !(e->hash == hash && e->headers == headers && e->stands_in == wanted->stands_in &&
			 e->error == wanted->error && e->path_length == path.length && memcmp(e->path, path.at, path.length) == 0))
		e = e->chain;
	if (e &&
		(e->restricted != wanted->restricted || (now_ms - e->checked_ms >= CACHE_CHECK_MS && !current(c, e, now_ms)))) {
		drop(c, e);
		e = NULL;
	}
	if (!e) {
		int error = path.length < PATH_MAX ? entry_new(c, wanted, &e) : ENAMETOOLONG;
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

/* --- files that need not be open --- */

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

/* --- making --- */

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

/* Makes room for what has been compressed at the cost of what was least recently used. */
static void keep_limit(struct cache *c) {
	for (struct cache_entry *e = c->oldest; e && c->packed > c->options.gzip_bytes; e = e->newer)
		if (e->packed) unpack(e);
}

/* What a coding is made from. */
static struct representation *source(const struct resource *r, enum coding coding) {
	return r->representation[coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP];
}

static void make(struct job *job, const atomic_bool *stop) {
	struct conversion *m = (struct conversion *)job;
	struct gzip_bytes stored = representation_stored(m->from);
	if (m->coding == CODING_GZIP) m->error = gzip_compress(&stored, stop, &m->body, &m->size);
	else m->error = gzip_measure(&stored, stop, &m->size);
}

static void made(struct job *job) {
	struct conversion *m = (struct conversion *)job;
	struct cache_entry *e = m->entry;
	struct resource *r = &e->resource;
	struct representation *file = NULL;
	uint64_t limit = m->coding == CODING_GZIP ? m->cache->options.gzip_bytes : UINT64_MAX;
	e->making = NULL;
	if (m->coding == CODING_GZIP) m->cache->making -= m->from->size;
	if (!job->ran) m->error = ECANCELED;
	if (m->error != ECANCELED) r->producible &= ~(1U << m->coding);
	if (!m->error && e->kept && m->size <= limit && !representation_changed(m->from)) {
		struct representation *from = source(r, m->coding); /* which may have got an entity-tag meanwhile */
		file = m->coding == CODING_GZIP ? representation_gzipped(from, m->body, m->size, &m->cache->packed)
										: representation_gunzipped(from, m->size);
		m->body = NULL;
	}
	if (file) {
		r->representation[m->coding] = file;
		r->available |= 1U << m->coding;
		e->packed = m->coding == CODING_GZIP;
		keep_limit(m->cache);
	}
	free(m->body);
	representation_release(m->from);
	entry_release(e);
	free(m);
}

struct job *cache_convert(struct cache *c, struct resource *r, enum coding coding) {
	struct cache_entry *e = (struct cache_entry *)r;
	struct representation *from = source(r, coding);
	bool compress = coding == CODING_GZIP;
	if (e->making) return &e->making->job;
	/* nobody waits for long: who comes when much is to be done gets the file as it is */
	if (compress && c->making && c->making + from->size > CACHE_MAKING_MAX) return NULL;
	if (compress && c->packed > c->options.gzip_bytes) return NULL; /* it is still being sent */
	struct conversion *m = calloc(1, sizeof *m);
	if (!m) return NULL;
	*m = (struct conversion){
		.job = {.run = make, .finish = made}, .cache = c, .entry = e, .from = from, .coding = coding};
	if (!jobs_add(compress ? c->options.compressing : c->options.unpacking, &m->job)) {
		free(m);
		return NULL;
	}
	if (compress) c->making += from->size;
	representation_retain(from);
	e->references++;
	e->making = m;
	return &m->job;
}

/* --- identifying --- */

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

/* Puts the file with its entity-tag in the place of that without. What has been made of that is made again. */
static void tag(struct cache *c, struct cache_entry *e, struct hash_job *h) {
	struct resource *r = &e->resource;
	struct representation **as = &r->representation[h->coding], *tagged = representation_tagged(h->file, h->digest);
	if (!tagged) return;
	representation_release(*as);
	*as = tagged;
	if (e->packed && h->coding == CODING_IDENTITY) unpack(e);
	struct representation **identity = &r->representation[CODING_IDENTITY];
	if (h->coding == CODING_GZIP && *identity && (*identity)->gzipped) {
		representation_release(*identity);
		*identity = NULL;
		r->available &= ~(1U << CODING_IDENTITY);
		r->producible |= 1U << CODING_IDENTITY;
	}
	c->bytes -= e->memory;
	c->descriptors -= e->descriptors;
	account(e);
	c->bytes += e->memory;
	c->descriptors += e->descriptors;
}

static void hashed(struct job *job) {
	struct hash_job *h = (struct hash_job *)job;
	struct cache_entry *e = h->entry;
	bool good = job->ran && !h->error && e->kept && e->resource.representation[h->coding] == h->file &&
				!representation_changed(h->file);
	e->hashing = NULL;
	h->cache->hashing -= h->file->size;
	if (good) tag(h->cache, e, h);
	representation_release(h->file);
	entry_release(e);
	free(h);
}

bool cache_hashes_soon(const struct cache *c, const struct representation *file, bool wanted) {
	return file->size <= DIGEST_SOON || (wanted && c->hashing <= CACHE_WANTED);
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
