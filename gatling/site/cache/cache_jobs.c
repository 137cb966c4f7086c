/* cache_jobs.c - see cache.h and cache_job.h: compresses, measures, hashes and copies representations in threads. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/base/file_read.h"
#include "gatling/codec/brotli.h"
#include "gatling/codec/gzip.h"
#include "gatling/codec/zstd.h"
#include "gatling/site/cache/cache_job.h"

struct job *cache_job_start(struct jobs *jobs, const struct cache_job *job) {
	if (job->from->remote) jobs = remote_file_jobs(job->from->remote);
	struct cache_job *j = jobs ? malloc(sizeof *j) : NULL;
	if (!j) return NULL;
	*j = *job;
	if (!jobs_add(jobs, &j->job)) {
		free(j);
		return NULL;
	}
	j->cache->pending[j->kind] += j->from->size;
	representation_retain(j->from);
	j->entry->references++;
	j->entry->job[j->kind] = j;
	return &j->job;
}

void cache_job_end(struct cache_job *j) {
	j->cache->pending[j->kind] -= j->from->size;
	j->entry->job[j->kind] = NULL;
	free(j->body);
	encoded_release(j->encoded);
	content_hash_leave(j->hashing);
	representation_release(j->from);
	cache_entry_release(j->entry);
	free(j);
}

static bool is_compressed(const struct cache_entry *e) { return e->compressed || e->deltas; }

static bool compressed_too_much(const struct cache *c) { return c->compressed > c->options.gzip_bytes; }

void cache_limit_compressed(struct cache *c, struct cache_entry *newest) {
	struct cache_entry *e;
	for (int i = 0; i < RINGS; i++)
		while (compressed_too_much(c) && (e = cache_victim(&c->ring[i], is_compressed, newest)))
			cache_entry_forget_compressed(e);
	if (compressed_too_much(c)) cache_entry_forget_compressed(newest);
}

void cache_job_check_file(struct cache_job *j) {
	struct stat st;
	if (j->error || j->from->fd == -1) return;
	if (fstat(j->from->fd, &st) == -1) j->error = errno;
	else if (!representation_unwritten(j->from, &st)) j->error = EAGAIN;
}

/* --- compressing --- */

typedef int compress(struct slice content, const atomic_bool *stop, char **body, uint64_t *size);

/* Compresses a file as well as it can be. Returns 0 or an errno; EBUSY: another thread of the process does so, which
 * bounds the memory. */
static int improve(struct cache_job *j, const atomic_bool *stop, char **body, uint64_t *size) {
	enum { PIECE = 1024 * 1024 };
	static atomic_flag busy = ATOMIC_FLAG_INIT;
	compress *const compressor = j->coding == CODING_BR ? brotli_compress : zstd_compress;
	const struct representation *f = j->from;
	if (atomic_flag_test_and_set(&busy)) return EBUSY;
	char *read = f->body ? NULL : file_read_pieces(f->fd, (size_t)f->size, PIECE, stop, NULL);
	const char *const at = f->body ? f->body : read;
	const struct slice content = {.at = at, .length = (size_t)f->size};
	const int error = at ? compressor(content, stop, body, size) : errno;
	free(read);
	atomic_flag_clear(&busy);
	return error;
}

static void compress_in_thread(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	const struct gzip_bytes stored = representation_stored(j->from);
	char *body = NULL;
	uint64_t size = 0;
	if ((j->encoded = encoded_find(&j->from->version, j->coding))) return;
	j->error = j->kind == IMPROVE ? improve(j, stop, &body, &size) : gzip_compress(&stored, stop, &body, &size);
	if (j->error) return;
	cache_job_check_file(j);
	if (j->error) free(body);
	else if (!(j->encoded = encoded_keep(&j->from->version, j->coding, body, size))) j->error = ENOMEM;
}

/* Returns whether what was compressed is worth its memory. */
static bool pays(const struct cache_job *j) {
	const struct cache *c = j->cache;
	const struct representation *gzip = j->entry->resource.representation[CODING_GZIP];
	const uint64_t size = j->encoded->content.length;
	if (j->kind == COMPRESS) return size <= c->options.gzip_bytes;
	return (!gzip || size < gzip->size) && c->compressed + size <= c->options.gzip_bytes;
}

/* Keeps what was compressed. Returns false if that cannot be done now. */
static bool keep(struct cache_job *j) {
	struct cache_entry *e = j->entry;
	struct representation *identity = e->resource.representation[CODING_IDENTITY]; /* j->from, or what replaced it */
	if (!e->cached || representation_changed(j->from)) return false;
	struct representation *f = representation_encoded(identity, j->encoded, &j->cache->compressed);
	j->encoded = NULL;
	if (!f) return false;
	e->resource.representation[j->coding] = f;
	e->resource.available |= 1U << j->coding;
	e->compressed |= 1U << j->coding;
	cache_limit_compressed(j->cache, e);
	return true;
}

static void compressed(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	const bool made = job->ran && !j->error, useless = made ? !pays(j) : j->error == EFBIG;
	/* after any other error it is tried again: there was no memory, or the file could not be read */
	if (useless || (made && keep(j))) j->entry->resource.producible &= ~(1U << j->coding);
	else if (j->kind == IMPROVE) j->cache->improve_ms = j->entry->used_ms + CACHE_IMPROVE_AGAIN_MS;
	cache_job_end(j);
}

static struct job *start_compressing(struct jobs *jobs, enum job_kind kind, struct cache *c, struct cache_entry *e,
									 enum coding coding) {
	const struct job job = {.run = compress_in_thread, .finish = compressed};
	return cache_job_start(jobs, &(struct cache_job){.job = job,
													 .kind = kind,
													 .cache = c,
													 .entry = e,
													 .from = e->resource.representation[CODING_IDENTITY],
													 .coding = coding});
}

/* --- unpacking --- */

static void measure(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	const struct gzip_bytes stored = representation_stored(j->from);
	j->error = gzip_measure(&stored, stop, &j->size);
	cache_job_check_file(j);
}

static void measured(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	struct resource *r = &j->entry->resource;
	struct representation *f = NULL;
	if (job->ran && !j->error && j->entry->cached && !representation_changed(j->from))
		f = representation_gunzipped(r->representation[CODING_GZIP], j->size);
	if (f || j->error == EILSEQ) r->producible &= ~(1U << CODING_IDENTITY);
	if (f) r->representation[CODING_IDENTITY] = f;
	if (f) r->available |= 1U << CODING_IDENTITY;
	cache_job_end(j);
}

struct job *cache_convert(struct cache *c, struct resource *r, enum coding coding) {
	struct cache_entry *e = (struct cache_entry *)r;
	const enum job_kind kind = coding == CODING_GZIP ? COMPRESS : UNPACK;
	const struct job unpack = {.run = measure, .finish = measured};
	if (e->job[kind]) return &e->job[kind]->job;
	if (kind == UNPACK)
		return cache_job_start(
			c->options.unpacking,
			&(struct cache_job){
				.job = unpack, .kind = UNPACK, .cache = c, .entry = e, .from = r->representation[CODING_GZIP]});
	/* requests must not wait long: while much is being compressed, further files are sent as they are */
	const uint64_t size = r->representation[CODING_IDENTITY]->size;
	if (c->pending[kind] && c->pending[kind] + size > CACHE_COMPRESSING_MAX) return NULL;
	if (c->compressed > c->options.gzip_bytes) return NULL; /* too many are still being sent */
	return start_compressing(c->options.compressing, kind, c, e, CODING_GZIP);
}

/* --- hashing --- */

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
	if (coding == CODING_IDENTITY) cache_entry_forget_compressed(j->entry);
	if (coding == CODING_GZIP && identity && identity->gzipped) cache_forget_produced(r, CODING_IDENTITY);
	cache_entry_account(j->cache, j->entry);
}

static void hashed(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	bool current = j->entry->cached && j->entry->resource.representation[j->from->coding] == j->from;
	if (job->ran && !j->error && current && !representation_changed(j->from)) tag(j);
	cache_job_end(j);
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
		(void)cache_job_start(soon ? c->options.hashing : c->options.hashing_large,
							  &(struct cache_job){.job = job, .kind = HASH, .cache = c, .entry = e, .from = f});
	}
	if (!e->job[HASH] || e->job[HASH]->from != f) return NULL;
	return soon || use == ETAG_AWAITED ? &e->job[HASH]->job : NULL;
}

void cache_improve(struct cache *c, struct resource *r, enum coding coding, int64_t now_ms) {
	struct cache_entry *e = (struct cache_entry *)r;
	const struct representation *identity = r->representation[CODING_IDENTITY];
	const uint64_t expected = identity->size / 4;
	if (e->job[IMPROVE] || !e->cached || !e->asked || now_ms < c->improve_ms) return;
	if (!freshness_settled(&r->freshness)) return;
	if (!identity->validators.etag.at) {
		(void)cache_hash(c, r, CODING_IDENTITY, ETAG_USEFUL);
		return;
	}
	if (c->compressed + expected > c->options.gzip_bytes) return;
	if (jobs_count(c->options.improving) < CACHE_IMPROVING_MAX)
		(void)start_compressing(c->options.improving, IMPROVE, c, e, coding);
}

static void compute_digest(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	const struct representation *f = j->from;
	const struct slice content = {.at = f->body, .length = (size_t)f->size};
	if (f->body) j->error = digest_of_memory(content, j->digest);
	else if (!digest_find(&f->version, j->digest))
		j->error = digest_of_file(f->fd, f->size, job->background, stop, j->digest);
	cache_job_check_file(j);
}

static void digested(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	const bool done = job->ran && !j->error && !representation_changed(j->from);
	if (done && !j->from->body) digest_keep(&j->from->version, j->digest);
	if (done) representation_digested(j->from, j->digest);
	cache_job_end(j);
}

struct job *cache_digest(struct cache *c, struct resource *r, struct representation *f) {
	struct cache_entry *e = (struct cache_entry *)r;
	const bool soon = f->size <= CONTENT_HASH_SOON;
	const struct job job = {.run = compute_digest, .finish = digested, .background = !soon};
	unsigned char digest[DIGEST_LENGTH];
	if (f->fd != -1 && digest_find(&f->version, digest)) representation_digested(f, digest);
	if (f->gzipped || f->digest || (f->fd != -1 && cache_lacks_files(c))) return NULL;
	if (!soon && (f->remote || c->pending[DIGEST] + f->size > CACHE_DIGEST_MAX)) return NULL;
	if (!e->job[DIGEST])
		(void)cache_job_start(soon ? c->options.hashing : c->options.improving,
							  &(struct cache_job){.job = job, .kind = DIGEST, .cache = c, .entry = e, .from = f});
	/* that of a representation which this one has replaced, or of another coding, is waited for, too */
	return soon && e->job[DIGEST] && e->job[DIGEST]->from->size <= CONTENT_HASH_SOON ? &e->job[DIGEST]->job : NULL;
}

static void copy(struct job *job, const atomic_bool *stop) {
	enum { PIECE = 1024 * 1024 };
	struct cache_job *j = (struct cache_job *)job;
	j->body = file_read_pieces(j->from->fd, (size_t)j->from->size, PIECE, stop, NULL);
	j->error = j->body ? 0 : errno;
	cache_job_check_file(j);
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
	cache_job_end(j);
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
	if (e->cached && e->asked && freshness_settled(&r->freshness) && may_copy(c, f->size, e->used_ms)) {
		const struct job job = {.run = copy, .finish = copied};
		(void)cache_job_start(c->options.hashing,
							  &(struct cache_job){.job = job, .kind = COPY, .cache = c, .entry = e, .from = f});
	}
	return f;
}
