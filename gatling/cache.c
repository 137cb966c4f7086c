/* cache.c - see cache.h. A hash table with chains and a list from the most to the least recently used. What does not
 * exist is not remembered: nobody can fill the table with what is not there. */
#include "gatling/cache.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "gatling/freshness.h"
#include "gatling/gzip.h"
#include "gatling/hash.h"
#include "gatling/mime.h"

enum { BUCKETS = 8192, SUFFIX_ROOM = 8 };

struct entry {
	struct resource resource; /* first: a resource is its entry */
	unsigned references;      /* the cache's, and that of what is being made */
	bool kept;                /* by the cache, still */
	bool recent;              /* see IDENTITY_RECENT_S */
	bool packed;              /* the gzip has been made here */
	bool guarded;             /* by the site */
	uint64_t hash, headers;   /* headers: the id of the set, 0 for none */
	int64_t checked_ms;
	size_t memory;
	unsigned descriptors;
	struct identity identity[CODINGS]; /* of the file and those beside it; all zero: there is none */
	struct making *making;
	struct entry *chain;
	struct entry *newer, *older;
	size_t path_length;
	char path[];
};

struct cache {
	struct cache_options options;
	uint64_t seed, making;
	size_t packed; /* bytes of what has been compressed, until the last who sends it is done */
	unsigned resources, descriptors;
	size_t bytes;
	struct entry *newest, *oldest;
	struct entry *bucket[BUCKETS];
};

struct cache *cache_new(const struct cache_options *options) {
	struct cache *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->options = *options;
	c->seed = (uint64_t)(uintptr_t)c; /* the paths in the table are the owner's, not the clients' */
	return c;
}

static void entry_release(struct entry *e) {
	if (--e->references) return;
	for (int i = 0; i < CODINGS; i++)
		if (e->resource.as[i]) file_release(e->resource.as[i]);
	for (int i = 0; i < GUARDS_OF_PATH; i++) guard_release(e->resource.guard[i]);
	free(e);
}

/* --- the table --- */

static void newest_link(struct cache *c, struct entry *e) {
	e->newer = NULL;
	e->older = c->newest;
	if (c->newest) c->newest->newer = e;
	else c->oldest = e;
	c->newest = e;
}

static void age_unlink(struct cache *c, struct entry *e) {
	if (e->newer) e->newer->older = e->older;
	else c->newest = e->older;
	if (e->older) e->older->newer = e->newer;
	else c->oldest = e->newer;
}

/* What was compressed here is gone, and may be made again. */
static void unpack(struct entry *e) {
	struct file **gzip = &e->resource.as[CODING_GZIP];
	file_release(*gzip);
	*gzip = NULL;
	e->packed = false;
	e->resource.there &= ~(1U << CODING_GZIP);
	e->resource.makes |= 1U << CODING_GZIP;
}

static void drop(struct cache *c, struct entry *e) {
	struct entry **link = &c->bucket[e->hash % BUCKETS];
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

void cache_drop(struct cache *c, struct resource *resource) { drop(c, (struct entry *)resource); }

static bool over_limit(const struct cache *c) {
	return c->resources > CACHE_RESOURCES_MAX || c->bytes > CACHE_BYTES_MAX || c->descriptors > c->options.descriptors;
}

/* Takes the reference over. */
static void insert(struct cache *c, struct entry *e) {
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

/* --- the files of a resource --- */

/* The path of the file beside it with the suffix of a coding. */
static const char *path_of(const struct entry *e, enum coding coding, char *room) {
	memcpy(room, e->path, e->path_length);
	memcpy(room + e->path_length, coding_suffix[coding].at, coding_suffix[coding].length + 1);
	return room;
}

static bool ends_with(const struct entry *e, struct slice suffix) {
	return e->path_length > suffix.length &&
		   memcmp(e->path + e->path_length - suffix.length, suffix.at, suffix.length) == 0;
}

/* What is packed already is not looked for packed once more, nor what might be a private key: nobody could see that. */
static bool stands_alone(const struct entry *e) {
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++)
		if (ends_with(e, coding_suffix[i])) return true;
	return ends_with(e, SLICE(".pem")) || ends_with(e, SLICE(".key"));
}

/* What stat(2) says of each of its files. 0, or what is wrong with the file itself. */
static int look(const struct cache *c, const struct entry *e, struct identity *identity) {
	char path[PATH_MAX + SUFFIX_ROOM];
	int error = 0, last = stands_alone(e) ? CODING_IDENTITY : CODINGS - 1;
	memset(identity, 0, CODINGS * sizeof *identity);
	for (int i = CODING_IDENTITY; i <= last; i++) {
		struct stat st;
		bool there = tree_stat(c->options.tree, path_of(e, (enum coding)i, path), &st) == 0;
		if (there) identity[i] = identity_of(&st);
		if (i == CODING_IDENTITY && !there) error = errno;
		if (i == CODING_IDENTITY && there && S_ISDIR(st.st_mode)) error = EISDIR;
		if (i == CODING_IDENTITY && there && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) error = EACCES;
		if (error && error != ENOENT) return error; /* to open a fifo would wake its writer */
	}
	return error;
}

static bool usable(const struct identity *beside, const struct identity *original) {
	if (!S_ISREG(beside->mode) || !(beside->mode & S_IROTH)) return false;
	return !original->mode || identity_compare_times(beside->modified, original->modified) >= 0;
}

static int open_as(const struct cache *c, struct entry *e, enum coding coding) {
	char path[PATH_MAX + SUFFIX_ROOM];
	struct file *file;
	int fd = tree_open(c->options.tree, path_of(e, coding, path), 0);
	if (fd == -1) return errno;
	int error = file_load(fd, (struct slice){.at = path, .length = strlen(path)}, &file);
	if (error) return error;
	e->resource.as[coding] = file;
	e->resource.there |= 1U << coding;
	e->identity[coding] = *file_identity(file);
	return 0;
}

static void account(struct entry *e) {
	e->memory = sizeof *e;
	e->descriptors = 0;
	for (int i = 0; i < CODINGS; i++) {
		const struct file *f = e->resource.as[i];
		if (f) e->memory += file_memory(f);
		e->descriptors += f && f->fd != -1;
	}
}

/* Which of its codings can be made from what is there. */
static unsigned makeable(const struct cache *c, const struct resource *r, const char *type) {
	const struct file *identity = r->as[CODING_IDENTITY];
	if (!identity) return r->as[CODING_GZIP] ? 1U << CODING_IDENTITY : 0;
	if (r->as[CODING_GZIP] || !c->options.gzip_bytes || !gzip_worthwhile(type)) return 0;
	return identity->size > GZIP_LEAST && identity->size <= GZIP_MOST ? 1U << CODING_GZIP : 0;
}

static int dress(const struct cache *c, struct entry *e, const struct header_set *headers) {
	struct resource *r = &e->resource;
	struct slice path = {.at = e->path, .length = e->path_length};
	struct dress d = {.type = mime_type(path), .headers = headers};
	int error = 0;
	r->makes = makeable(c, r, d.type);
	d.varies = (r->there | r->makes) != 1U << CODING_IDENTITY;
	if (c->options.cache_control) d.cache_control = freshness(path, d.type, e->guarded || r->guard[0] || r->guard[1]);
	for (int i = 0; i < CODINGS && !error; i++) {
		d.coding = (enum coding)i;
		if (r->as[i]) error = file_dress(r->as[i], &d);
	}
	return error;
}

static void find_guards(const struct cache *c, const struct entry *e, struct guard **guard) {
	guards_of_path(c->options.guards, (struct slice){.at = e->path, .length = e->path_length}, guard);
}

static int load(const struct cache *c, struct entry *e, const struct header_set *headers) {
	time_t now = time(NULL);
	int error = look(c, e, e->identity);
	if (error && error != ENOENT) return error;
	if (!error && (error = open_as(c, e, CODING_IDENTITY))) return error;
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++)
		if (usable(&e->identity[i], &e->identity[CODING_IDENTITY]) && open_as(c, e, (enum coding)i) == 0) error = 0;
	if (error) return error;
	for (int i = 0; i < CODINGS; i++) e->recent |= e->identity[i].mode && identity_recent(&e->identity[i], now);
	find_guards(c, e, e->resource.guard);
	error = dress(c, e, headers);
	account(e);
	return error;
}

static int entry_new(const struct cache *c, const struct wanted *wanted, struct entry **result) {
	struct entry *e = calloc(1, sizeof *e + wanted->path.length + 1);
	if (!e) return ENOMEM;
	e->references = 1;
	e->guarded = wanted->guarded;
	memcpy(e->path, wanted->path.at, wanted->path.length);
	e->path_length = wanted->path.length;
	int error = load(c, e, wanted->headers);
	if (error) entry_release(e);
	else *result = e;
	return error;
}

/* --- finding --- */

/* Whether its files are as they were when it was loaded. */
static bool current(const struct cache *c, struct entry *e, int64_t now_ms) {
	struct identity now[CODINGS];
	if (e->recent) return false;
	int error = look(c, e, now);
	if (error && error != ENOENT) return false;
	for (int i = 0; i < CODINGS; i++)
		if (!identity_same(&now[i], &e->identity[i])) return false;
	struct guard *guard[GUARDS_OF_PATH];
	bool same = true;
	find_guards(c, e, guard);
	for (int i = 0; i < GUARDS_OF_PATH; i++) {
		same &= !guard[i] == !e->resource.guard[i];
		guard_release(e->resource.guard[i]);
		e->resource.guard[i] = guard[i];
	}
	e->checked_ms = now_ms;
	return same;
}

int cache_find(struct cache *c, const struct wanted *wanted, int64_t now_ms, struct resource **resource) {
	struct slice path = wanted->path;
	uint64_t headers = wanted->headers ? wanted->headers->id : 0, hash = hash_octets(c->seed + headers, path);
	struct entry *e = c->bucket[hash % BUCKETS];
	while (e && !(e->hash == hash && e->headers == headers && e->path_length == path.length &&
				  memcmp(e->path, path.at, path.length) == 0))
		e = e->chain;
	if (e && (e->guarded != wanted->guarded || (now_ms - e->checked_ms >= CACHE_CHECK_MS && !current(c, e, now_ms)))) {
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
	*resource = &e->resource;
	return 0;
}

/* --- making --- */

struct making {
	struct job job;
	struct cache *cache;
	struct entry *entry;
	struct file *from;
	enum coding coding; /* into which */
	char *body;
	uint64_t size;
	int error;
};

/* Makes room for what has been compressed at the cost of what was least recently used. */
static void keep_limit(struct cache *c) {
	for (struct entry *e = c->oldest; e && c->packed > c->options.gzip_bytes; e = e->newer)
		if (e->packed) unpack(e);
}

static void make(struct job *job, const atomic_bool *stop) {
	struct making *m = (struct making *)job;
	if (m->coding == CODING_GZIP) m->error = gzip_compress(m->from, stop, &m->body, &m->size);
	else m->error = gzip_measure(m->from, stop, &m->size);
}

static void made(struct job *job) {
	struct making *m = (struct making *)job;
	struct entry *e = m->entry;
	struct resource *r = &e->resource;
	struct file *file = NULL;
	uint64_t limit = m->coding == CODING_GZIP ? m->cache->options.gzip_bytes : UINT64_MAX;
	e->making = NULL;
	if (m->coding == CODING_GZIP) m->cache->making -= m->from->size;
	if (!job->ran) m->error = ECANCELED;
	if (m->error != ECANCELED) r->makes &= ~(1U << m->coding);
	if (!m->error && e->kept && m->size <= limit && !file_changed(m->from)) {
		file = m->coding == CODING_GZIP ? file_packed(m->from, m->body, m->size, &m->cache->packed)
										: file_unpacked(m->from, m->size);
		m->body = NULL;
	}
	if (file) {
		r->as[m->coding] = file;
		r->there |= 1U << m->coding;
		e->packed = m->coding == CODING_GZIP;
		keep_limit(m->cache);
	}
	free(m->body);
	file_release(m->from);
	entry_release(e);
	free(m);
}

struct job *cache_make(struct cache *c, struct resource *r, enum coding coding) {
	struct entry *e = (struct entry *)r;
	struct file *from = r->as[coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP];
	bool compress = coding == CODING_GZIP;
	if (e->making) return &e->making->job;
	/* nobody waits for long: who comes when much is to be done gets the file as it is */
	if (compress && c->making && c->making + from->size > CACHE_MAKING_MAX) return NULL;
	if (compress && c->packed > c->options.gzip_bytes) return NULL; /* it is still being sent */
	struct making *m = calloc(1, sizeof *m);
	if (!m) return NULL;
	*m = (struct making){.job = {.run = make, .finish = made}, .cache = c, .entry = e, .from = from, .coding = coding};
	if (!jobs_add(compress ? c->options.compressing : c->options.unpacking, &m->job)) {
		free(m);
		return NULL;
	}
	if (compress) c->making += from->size;
	file_retain(from);
	e->references++;
	e->making = m;
	return &m->job;
}
