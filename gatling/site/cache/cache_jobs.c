/* cache_jobs.c - see cache.h: compresses, measures, hashes and copies representations in threads. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/base/file_read.h"
#include "gatling/base/gzip.h"
#include "gatling/files/content_hash.h"
#include "gatling/site/cache/cache_entry.h"

struct cache_job {
	struct job job;
	enum job_kind kind;
	struct cache *cache;
	struct cache_entry *entry;
	struct representation *from;
	char *body;
	uint64_t size;
	struct content_hash_state *hashing; /* of a large file */
	unsigned char content_hash[CONTENT_HASH_LENGTH];
	int error;
};

/* Starts a job, which holds references to its entry and representation. Returns NULL without memory or a thread. */
static struct job *start(struct jobs *jobs, struct job job, enum job_kind kind, struct cache *c, struct cache_entry *e,
						 struct representation *from) {
	if (from->remote) jobs = remote_file_jobs(from->remote);
	struct cache_job *j = jobs ? malloc(sizeof *j) : NULL;
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
	content_hash_leave(j->hashing);
	representation_release(j->from);
	cache_entry_release(j->entry);
	free(j);
}

static bool is_compressed(const struct cache_entry *e) { return e->compressed; }

static bool compressed_too_much(const struct cache *c) { return c->compressed > c->options.gzip_bytes; }

/* Drops compressed bodies until the others are within the limit, `newest` last. */
static void limit_compressed(struct cache *c, struct cache_entry *newest) {
	struct cache_entry *e;
	for (int i = 0; i < RINGS; i++)
		while (compressed_too_much(c) && (e = cache_victim(&c->ring[i], is_compressed, newest)))
			cache_entry_forget_compressed(e);
	if (compressed_too_much(c)) cache_entry_forget_compressed(newest);
}

/* Returns the representation from which a coding is generated. */
static struct representation *source(const struct resource *r, enum coding coding) {
	return r->representation[coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP];
}

/* Called in the thread when the file was read: if it is on another machine, finds out whether it has changed. Later the
 * loop does that for others. */
static void check_remote(struct cache_job *j) {
	struct stat st;
	if (j->error || !j->from->remote) return;
	if (fstat(j->from->fd, &st) == -1) j->error = errno;
	else if (!representation_unwritten(j->from, &st)) j->error = EAGAIN;
}

static void convert(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	struct gzip_bytes stored = representation_stored(j->from);
	if (j->kind == COMPRESS) j->error = gzip_compress(&stored, stop, &j->body, &j->size);
	else j->error = gzip_measure(&stored, stop, &j->size);
	check_remote(j);
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
		struct representation *from = source(r, coding); /* j->from, or the one that replaced it */
		f = compress ? representation_gzipped(from, j->body, j->size, &c->compressed)
					 : representation_gunzipped(from, j->size);
		j->body = NULL;
	}
	/* after any other error it is tried again: there was no memory, or the file could not be read */
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
	/* requests must not wait long: while much is being compressed, further files are sent as they are */
	if (c->pending[kind] && c->pending[kind] + from->size > CACHE_COMPRESSING_MAX) return NULL;
	if (c->compressed > c->options.gzip_bytes) return NULL; /* too many are still being sent */
	return start(c->options.compressing, job, kind, c, e, from);
}

static void hash(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	j->error = content_hash_compute(j->from->fd, j->from->size, stop, j->content_hash);
}

static void hash_slice(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	j->error = content_hash_slice(&j->hashing, j->from->fd, j->from->size, stop, j->content_hash);
	job->task.again = j->error == EINPROGRESS;
}

/* Replaces a representation by one with its entity-tag, and drops what was generated from it. */
static void tag(struct cache_job *j) {
	struct resource *r = &j->entry->resource;
	struct representation *tagged = representation_tagged(j->from, j->content_hash);
	enum coding coding = j->from->coding;
	if (!tagged) return;
	representation_release(r->representation[coding]);
	r->representation[coding] = tagged;
	const struct representation *identity = r->representation[CODING_IDENTITY];
	if (coding == CODING_IDENTITY && j->entry->compressed) cache_entry_forget_compressed(j->entry);
	if (coding == CODING_GZIP && identity && identity->gzipped) cache_forget_produced(r, CODING_IDENTITY);
	cache_entry_account(j->cache, j->entry);
}

static void hashed(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	bool current = j->entry->cached && j->entry->resource.representation[j->from->coding] == j->from;
	if (job->ran && !j->error && current && !representation_changed(j->from)) tag(j);
	end(j);
}

struct job *cache_hash(struct cache *c, struct resource *r, enum coding coding, enum etag_use use) {
	struct cache_entry *e = (struct cache_entry *)r;
	struct representation *f = r->representation[coding];
	if (f->fd == -1 || f->gzipped || f->validators.etag.at) return NULL;
	if (use < ETAG_USEFUL && file_version_unsettled_ms(&f->version)) return NULL;
	if (f->remote && f->size > CONTENT_HASH_SOON) return NULL; /* it would hold up those of other files */
	const bool soon = f->size <= CONTENT_HASH_SOON,
			   starts = soon || use >= ETAG_USEFUL || (use == ETAG_SENT && e->asked);
	if (!e->job[HASH] && starts) {
		const struct job job = {.run = soon ? hash : hash_slice, .finish = hashed, .background = !soon};
		(void)start(soon ? c->options.hashing : c->options.hashing_large, job, HASH, c, e, f);
	}
	if (!e->job[HASH] || e->job[HASH]->from != f) return NULL;
	return soon || use == ETAG_AWAITED ? &e->job[HASH]->job : NULL;
}

static void copy(struct job *job, const atomic_bool *stop) {
	enum { PIECE = 1024 * 1024 };
	struct cache_job *j = (struct cache_job *)job;
	j->body = file_read_pieces(j->from->fd, (size_t)j->from->size, PIECE, stop, NULL);
	j->error = j->body ? 0 : errno;
	check_remote(j);
}

static void copied(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	struct cache *c = j->cache;
	struct cache_entry *e = j->entry;
	struct representation *from = j->from, *f = NULL;
	const bool current = e->cached && e->resource.representation[from->coding] == from;
	if (job->ran && !j->error && current && !representation_changed(from)) {
		f = representation_copied(from, j->body, &c->copies);
		j->body = NULL;
	}
	if (f) {
		e->resource.copy[from->coding] = f;
		cache_note_copy(c, e, e->used_ms);
		cache_make_room(c, e);
	}
	end(j);
}

/* Returns whether a file of that size may be copied now. The thread also computes hashes, for which requests wait: it
 * copies only when it has nothing else to do, one file at a time. */
static bool may_copy(struct cache *c, uint64_t size, int64_t now_ms) {
	const uint64_t most = c->options.bytes / CACHE_COPIES_PART, all = c->copies + size;
	if (size > CACHE_COPY_MAX || size > c->options.bytes / CACHE_COPY_PART || jobs_count(c->options.hashing))
		return false;
	return all <= most || cache_forget_copies(c, all - most, now_ms);
}

struct representation *cache_copied(struct cache *c, struct resource *r, struct representation *f) {
	struct cache_entry *e = (struct cache_entry *)r;
	if (f->fd == -1 || f->gzipped || !f->validators.etag.at) return f;
	if (r->copy[f->coding]) {
		cache_note_copy(c, e, e->used_ms);
		return r->copy[f->coding];
	}
	if (e->cached && e->asked && freshness_settled(&r->freshness) && may_copy(c, f->size, e->used_ms))
		(void)start(c->options.hashing, (struct job){.run = copy, .finish = copied}, COPY, c, e, f);
	return f;
}
