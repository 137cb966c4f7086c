/* cache_versions.c - see cache.h: versions of a file as dictionaries for each other (RFC 9842), whether or not their
 * names differ in a hash, and pages for pages. What a client was sent is kept as a dictionary; when it comes back for a
 * newer version, and says what it has, it is sent the difference. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "gatling/codec/dcb.h"
#include "gatling/codec/zstd.h"
#include "gatling/site/cache/cache_control.h"
#include "gatling/site/cache/cache_job.h"
#include "gatling/site/cache/dictionaries.h"

enum {
	OLDER_MAX = 8,           /* older versions that are read, the newest ones */
	NAMES_READ_MAX = 20000,  /* of their directory */
	REGISTERED_TYPE_MAX = 64 /* bytes of a media type */
};

#define NAVIGATIONS ", match-dest=(\"document\")"
enum { MATCH_MORE = sizeof "match=\"/*\"" NAVIGATIONS }; /* bytes of Use-As-Dictionary besides the path */

/* --- names --- */

/* Returns the last name of a path. */
static struct slice name_of(struct slice path) {
	size_t directory = path.length;
	while (directory && path.at[directory - 1] != '/') directory--;
	return slice_rest(path, directory);
}

/* Returns what precedes the wildcard in s, which ends as the path does, and what follows it. */
static struct slice before(struct slice s, struct slice wildcard) {
	return slice_first(s, (size_t)(wildcard.at - s.at));
}

static struct slice behind(struct slice s, struct slice wildcard) {
	return slice_rest(s, (size_t)(wildcard.at - s.at) + wildcard.length);
}

/* Returns the part of a path that may be a hash of Vite's, which can look like words: if it is none, little is lost. Or
 * returns the end of the path. */
static struct slice may_be_hash(struct slice path) {
	enum { LENGTH = 8 };
	struct slice name = name_of(path);
	size_t dot = name.length;
	while (dot && name.at[dot - 1] != '.') dot--;
	bool capital = false, small = false, digit = false;
	if (dot < LENGTH + 3 || !strchr("-.", name.at[dot - LENGTH - 2])) return slice_rest(path, path.length);
	const struct slice hash = slice_rest(slice_first(name, dot - 1), dot - 1 - LENGTH);
	for (size_t i = 0; i < LENGTH; i++) {
		capital |= hash.at[i] >= 'A' && hash.at[i] <= 'Z';
		small |= hash.at[i] >= 'a' && hash.at[i] <= 'z';
		digit |= text_is_digit(hash.at[i]);
	}
	return capital + small + digit > 1 ? hash : slice_rest(path, path.length);
}

struct slice cache_versions_wildcard(struct slice path, const char *type) {
	static const struct slice index = SLICE("index.html"), suffix = SLICE(".html");
	const struct slice name = name_of(path), hash = cache_control_hash(path, type);
	size_t differs = 0;
	if (!cache_control_is_page(type)) return hash.at ? hash : may_be_hash(path);
	if (slice_equal(name, index)) differs = index.length;
	else if (slice_ends(name, suffix)) differs = suffix.length;
	return slice_rest(path, path.length - differs);
}

bool cache_versions_named(struct slice path, struct slice wildcard) {
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/$@!,=&";
	if (!wildcard.at || path.length + MATCH_MORE > CACHE_MATCH_MAX) return false;
	for (size_t i = 0; i < path.length; i++) /* others mean something in a URL pattern, or are encoded in a URL */
		if (!memchr(plain, path.at[i], sizeof plain - 1)) return false;
	return true;
}

struct slice cache_versions_match(struct slice path, struct slice wildcard, bool page, char *out) {
	/* Chromium keeps one dictionary for each pattern as it is written, so relative ones would replace each other */
	const struct slice navigations = page ? SLICE(NAVIGATIONS) : SLICE("");
	const char *end = TEXT_JOIN(out, SLICE("match=\"/"), before(path, wildcard), SLICE("*"), behind(path, wildcard),
								SLICE("\""), navigations);
	return (struct slice){.at = out, .length = (size_t)(end - out)};
}

/* Writes the pattern of a path to room (DICTIONARY_PATTERN_MAX bytes), and returns it. */
static struct slice pattern_of(struct slice path, struct slice wildcard, char *room) {
	const char *end = TEXT_JOIN(room, before(path, wildcard), SLICE("*"), behind(path, wildcard));
	return (struct slice){.at = room, .length = (size_t)(end - room)};
}

/* --- dictionaries, in the thread --- */

struct version {
	char path[NAME_MAX + 1 + DICTIONARY_PATTERN_MAX];
	struct timespec modified;
};

/* Puts a version, or a directory with some, among the newest ones, in any order. */
static void note_version(struct version *all, unsigned *count, struct slice path, const struct stat *st) {
	const struct timespec modified = file_version_of(st).modified;
	struct version *place = &all[*count];
	if (*count < OLDER_MAX) {
		++*count;
	} else {
		place = all;
		for (unsigned i = 1; i < OLDER_MAX; i++)
			if (file_version_compare_times(place->modified, all[i].modified) > 0) place = &all[i];
		if (file_version_compare_times(modified, place->modified) <= 0) return;
	}
	*text_copy(place->path, path) = '\0';
	place->modified = modified;
}

static DIR *open_directory(const struct docroot *docroot, const char *path) {
	const int fd = docroot_open(docroot, path, O_DIRECTORY);
	DIR *names = fd == -1 ? NULL : fdopendir(fd);
	if (!names && fd != -1) close(fd);
	return names;
}

/* Returns whether a name in the directory of an entry is that of a version. type: its media type. */
static bool is_version(const struct cache_entry *e, struct slice directory, struct slice found, struct slice pattern,
					   const char *type) {
	char path[DICTIONARY_PATTERN_MAX], other[DICTIONARY_PATTERN_MAX];
	const struct slice name = name_of(e->path);
	if (!slice_starts(found, before(name, e->wildcard)) || !slice_ends(found, behind(name, e->wildcard)) ||
		directory.length + found.length >= sizeof path)
		return false;
	*TEXT_JOIN(path, directory, found) = '\0';
	const struct slice whole = slice_of(path), wildcard = cache_versions_wildcard(whole, type);
	return cache_versions_named(slice_rest(whole, e->site), wildcard) &&
		   slice_equal(pattern_of(whole, wildcard, other), pattern);
}

/* Finds the versions of a file in a root: of the others, or of this one (""), which has the file itself. Returns how
 * many. */
static unsigned find_versions(const struct docroot *docroot, struct slice root, const struct cache_entry *e,
							  struct slice pattern, const char *type, const atomic_bool *stop, struct version *all) {
	char path[sizeof all->path + NAME_MAX];
	const struct slice name = name_of(e->path), directory = slice_first(e->path, e->path.length - name.length);
	unsigned count = 0, read = 0;
	char *const end = TEXT_JOIN(path, root, directory);
	*end = '\0';
	DIR *names = open_directory(docroot, *path ? path : ".");
	for (const struct dirent *entry; names && read++ < NAMES_READ_MAX && (entry = readdir(names));) {
		struct stat st;
		const struct slice found = slice_of(entry->d_name);
		if (atomic_load(stop)) break;
		if (!is_version(e, directory, found, pattern, type) || (!root.length && slice_equal(found, name))) continue;
		*text_copy(end, found) = '\0';
		if (docroot_stat(docroot, path, &st) == -1 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH)) continue;
		if (st.st_size <= DICTIONARY_MAX) note_version(all, &count, slice_of(path), &st);
	}
	if (names) closedir(names);
	return count;
}

/* Finds the newest directories in one. Returns how many. */
static unsigned find_directories(const struct docroot *docroot, const atomic_bool *stop, struct version *all) {
	unsigned count = 0, read = 0;
	DIR *names = open_directory(docroot, ".");
	for (const struct dirent *entry; names && read++ < NAMES_READ_MAX && (entry = readdir(names));) {
		struct stat st;
		if (atomic_load(stop)) break;
		if (*entry->d_name != '.' && docroot_stat(docroot, entry->d_name, &st) == 0 && S_ISDIR(st.st_mode))
			note_version(all, &count, slice_of(entry->d_name), &st);
	}
	if (names) closedir(names);
	return count;
}

/* Keeps content, whose digest is remembered by its version. */
static void keep(const struct cache *c, const struct file_version *version, struct slice pattern,
				 struct slice content) {
	unsigned char digest[DIGEST_LENGTH];
	if (digest_of_memory(content, digest)) return;
	digest_keep(version, digest);
	dictionary_keep(digest, pattern, content, c->options.dictionary_bytes);
}

/* Reads a file and keeps it, unless it is kept already. */
static void keep_file(const struct cache *c, int fd, const struct file_version *version, struct slice pattern,
					  const atomic_bool *stop) {
	unsigned char digest[DIGEST_LENGTH];
	if (fd == -1 || (digest_find(version, digest) && dictionary_is_kept(digest, pattern))) return;
	char *content = file_read_pieces(fd, (size_t)version->size, DIGEST_PIECE, stop, NULL);
	if (content) keep(c, version, pattern, (struct slice){.at = content, .length = (size_t)version->size});
	free(content);
}

/* Keeps the file at a path, if it may be sent. */
static void keep_found(const struct cache_job *j, const struct docroot *docroot, const char *path, struct slice pattern,
					   const atomic_bool *stop) {
	const int fd = docroot_open(docroot, path, 0);
	struct stat st;
	if (fd == -1) return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IROTH && st.st_size <= DICTIONARY_MAX) {
		const struct file_version version = file_version_of(&st);
		keep_file(j->cache, fd, &version, pattern, stop);
	}
	close(fd);
}

/* Returns whether versions of a file have the same name, since it has no hash. */
static bool keeps_name(const struct cache_entry *e) {
	return e->wildcard.at + e->wildcard.length == e->path.at + e->path.length;
}

/* Keeps the newest versions of a file in a root, as above. One that keeps its name has one. */
static void keep_versions(const struct cache_job *j, const struct docroot *docroot, struct slice root,
						  struct slice pattern, const char *type, const atomic_bool *stop) {
	if (keeps_name(j->entry)) {
		char path[PATH_MAX + NAME_MAX];
		*TEXT_JOIN(path, root, j->entry->path) = '\0';
		keep_found(j, docroot, path, pattern, stop);
		return;
	}
	struct version *found = malloc(OLDER_MAX * sizeof *found);
	const unsigned count = found ? find_versions(docroot, root, j->entry, pattern, type, stop, found) : 0;
	for (unsigned i = 0; i < count && !atomic_load(stop); i++) keep_found(j, docroot, found[i].path, pattern, stop);
	free(found);
}

/* Returns whether a directory on the way to a file in an older root has a guard: whom that admits is not asked. Guards
 * that cannot be looked for count. */
static bool is_guarded(const struct docroot *docroot, struct slice root, struct slice path) {
	static const struct slice guard[] = {SLICE(".htaccess"), SLICE(".htaccess_global")};
	char whole[PATH_MAX + NAME_MAX], at[sizeof whole + NAME_MAX];
	struct stat st;
	const struct slice all = {.at = whole, .length = (size_t)(TEXT_JOIN(whole, root, path) - whole)};
	for (size_t length = root.length; length <= all.length; length++) {
		if (all.at[length - 1] != '/') continue;
		for (size_t i = 0; i < sizeof guard / sizeof *guard; i++) {
			*TEXT_JOIN(at, slice_first(all, length), guard[i]) = '\0';
			if (docroot_stat(docroot, at, &st) == 0 || errno != ENOENT) return true;
		}
	}
	return false;
}

/* Keeps those in the older roots. */
static void keep_older(const struct cache_job *j, struct slice pattern, const char *type, const atomic_bool *stop) {
	const struct docroot docroot = {.root = j->cache->options.older, .symlinks_inside = true};
	struct version *roots = malloc(OLDER_MAX * sizeof *roots);
	const unsigned count = roots ? find_directories(&docroot, stop, roots) : 0;
	for (unsigned i = 0; i < count; i++) {
		char root[NAME_MAX + 2];
		const char *end = TEXT_JOIN(root, slice_of(roots[i].path), SLICE("/"));
		const struct slice older = {.at = root, .length = (size_t)(end - root)};
		if (!is_guarded(&docroot, older, j->entry->path)) keep_versions(j, &docroot, older, pattern, type, stop);
	}
	free(roots);
}

static void register_versions(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	const struct representation *f = j->from;
	char room[DICTIONARY_PATTERN_MAX], type[REGISTERED_TYPE_MAX];
	const struct slice pattern = pattern_of(j->entry->path, j->entry->wildcard, room);
	const struct slice said = slice_first(f->type, slice_until(f->type, ';'));
	if (f->body) keep(j->cache, &f->version, pattern, (struct slice){.at = f->body, .length = (size_t)f->size});
	else keep_file(j->cache, f->fd, &f->version, pattern, stop);
	if (j->alone || said.length >= sizeof type) return;
	*text_copy(type, said) = '\0';
	if (!keeps_name(j->entry)) keep_versions(j, &j->cache->options.tree->docroot, SLICE(""), pattern, type, stop);
	if (j->cache->options.older != -1) keep_older(j, pattern, type, stop);
}

static void registered(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	if (!job->ran) j->entry->registered = false;
	cache_job_end(j);
}

void cache_register(struct cache *c, struct resource *r) {
	struct cache_entry *e = (struct cache_entry *)r;
	const struct job job = {.run = register_versions, .finish = registered, .background = true};
	if (!(r->versioned || r->offered) || e->registered || !e->cached || !freshness_settled(&r->freshness)) return;
	if (jobs_count(c->options.improving) >= CACHE_IMPROVING_MAX) return;
	const struct cache_job registering = {.job = job,
										  .kind = REGISTER,
										  .cache = c,
										  .entry = e,
										  .from = r->representation[CODING_IDENTITY],
										  .alone = r->guard.by_name};
	e->registered = cache_job_start(c->options.improving, &registering);
}

/* --- differences --- */

static void subtract(struct job *job, const atomic_bool *stop) {
	struct cache_job *j = (struct cache_job *)job;
	const struct representation *f = j->from;
	struct slice dictionary = {0};
	char *const kept = dictionary_unpack(j->digest, j->entry->path, &dictionary.length);
	char *const read = f->body ? NULL : file_read_pieces(f->fd, (size_t)f->size, DIGEST_PIECE, stop, NULL);
	const struct slice content = {.at = f->body ? f->body : read, .length = (size_t)f->size};
	dictionary.at = kept;
	j->error = ENOMEM;
	if (kept && content.at)
		j->error = (j->coding == CODING_DCB ? dcb_compress : zstd_compress_with)(dictionary, j->digest, content, stop,
																				 &j->body, &j->size);
	free(kept);
	free(read);
}

static struct delta *find_delta(const struct cache_entry *e, const unsigned char *digest, unsigned codings) {
	for (unsigned i = 0; e->deltas && i < DELTAS_MAX; i++)
		if (codings >> e->deltas[i].coding & 1 && memcmp(e->deltas[i].digest, digest, DIGEST_LENGTH) == 0)
			return &e->deltas[i];
	return NULL;
}

/* Returns the place for another difference, or NULL without memory. */
static struct delta *new_delta(struct cache_entry *e) {
	if (!e->deltas && !(e->deltas = calloc(DELTAS_MAX, sizeof *e->deltas))) return NULL;
	struct delta *place = &e->deltas[e->next_delta++ % DELTAS_MAX];
	if (place->difference) representation_release(place->difference);
	*place = (struct delta){0};
	return place;
}

static void subtracted(struct job *job) {
	struct cache_job *j = (struct cache_job *)job;
	struct cache_entry *e = j->entry;
	const bool done = job->ran && (!j->error || j->error == EFBIG) && e->cached && !representation_changed(j->from);
	struct delta *place = done ? new_delta(e) : NULL;
	if (place) {
		memcpy(place->digest, j->digest, DIGEST_LENGTH);
		place->coding = j->coding;
	}
	if (place && !j->error) {
		place->difference = representation_difference(e->resource.representation[CODING_IDENTITY], j->coding, j->digest,
													  j->body, j->size, &j->cache->compressed);
		j->body = NULL;
		cache_limit_compressed(j->cache, e);
	}
	cache_job_end(j);
}

struct representation *cache_delta(struct cache *c, struct resource *r, const unsigned char *digest, unsigned codings,
								   struct job **job) {
	struct cache_entry *e = (struct cache_entry *)r;
	struct representation *identity = r->representation[CODING_IDENTITY];
	struct cache_job subtracting = {.job = {.run = subtract, .finish = subtracted},
									.kind = DELTA,
									.cache = c,
									.entry = e,
									.from = identity,
									.coding = codings >> CODING_DCB & 1 ? CODING_DCB : CODING_DCZ};
	struct cache_job *const running = e->job[DELTA];
	const struct delta *delta = find_delta(e, digest, codings);
	*job = NULL;
	if (!(r->versioned || r->offered) || !e->cached || !identity->validators.etag.at) return NULL;
	if (delta) return delta->difference;
	if (running) {
		const bool same = memcmp(running->digest, digest, DIGEST_LENGTH) == 0 && codings >> running->coding & 1;
		*job = same ? &running->job : NULL;
		return NULL;
	}
	if (c->compressed > c->options.gzip_bytes) return NULL; /* too much is still being sent */
	if (c->pending[DELTA] && c->pending[DELTA] + identity->size > CACHE_SUBTRACTING_MAX) return NULL;
	if (e->next_delta >= DELTAS_MAX && e->used_ms - e->delta_ms < DELTA_AGAIN_MS) return NULL;
	if (!dictionary_is_found(digest, e->path)) return NULL;
	memcpy(subtracting.digest, digest, DIGEST_LENGTH);
	*job = cache_job_start(c->options.subtracting, &subtracting);
	if (*job) e->delta_ms = e->used_ms;
	return NULL;
}
