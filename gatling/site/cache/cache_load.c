/* cache_load.c - see cache_entry.h: loads the files of a resource. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "gatling/codec/brotli.h"
#include "gatling/codec/gzip.h"
#include "gatling/codec/zstd.h"
#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/files/key_file.h"
#include "gatling/files/report.h"
#include "gatling/media/content_type.h"
#include "gatling/site/cache/cache_control.h"
#include "gatling/site/cache/cache_entry.h"
#include "gatling/site/cache/dictionaries.h"

enum { SUFFIX_ROOM = 8 };

/* Writes the path of the file in a coding to room (PATH_MAX + SUFFIX_ROOM bytes), and returns it. */
static const char *coded_path(const struct cache_entry *e, enum coding coding, char *room) {
	*TEXT_JOIN(room, e->path, coding_suffix[coding]) = '\0';
	return room;
}

/* Returns whether other codings of a file are ignored: it has the name of an encoded file itself, or may be a private
 * key, which could not be recognized in an encoded file. */
static bool ignores_codings(const struct cache_entry *e) {
	return coding_original(e->path).length < e->path.length || slice_ends_nocase(e->path, SLICE(".svgz")) ||
		   key_file_named(e->path);
}

/* What threads find out of a file on another machine that is loaded. */
static unsigned opened(const struct cache_entry *e) {
	return key_file_named(e->path) ? REMOTE_OPENED | REMOTE_READ : REMOTE_OPENED;
}

/* Says that the files in other codings are going to be looked at. */
static void expect_codings(const struct cache *c, const struct cache_entry *e, unsigned what) {
	char path[PATH_MAX + SUFFIX_ROOM];
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++)
		tree_expect(c->options.tree, coded_path(e, (enum coding)i, path), what);
}

/* Writes the path of an alternate to room, as above, and returns it. */
static const char *alternate_path(struct slice stem, enum alternate which, char *room) {
	*TEXT_JOIN(room, stem, alternate_suffix[which]) = '\0';
	return room;
}

/* Returns the alternates that an entry may have, as alternates_of() does. */
static unsigned may_have_alternates(const struct cache_entry *e, struct slice *stem) {
	return e->is_substitute || e->error ? 0 : alternates_of(e->path, stem);
}

static void expect_alternates(const struct cache *c, const struct cache_entry *e) {
	char path[PATH_MAX + SUFFIX_ROOM];
	struct slice stem;
	const unsigned may = may_have_alternates(e, &stem);
	for (int i = 0; i < ALTERNATES; i++)
		if (may >> i & 1) tree_expect(c->options.tree, alternate_path(stem, (enum alternate)i, path), 0);
}

/* Has threads find out all that is needed to load files on another machine, at once. Returns 0 or EINPROGRESS. */
static int find_out(const struct cache *c, const struct cache_entry *e) {
	tree_expect_file(c->options.tree, e->text, opened(e));
	if (!ignores_codings(e)) expect_codings(c, e, opened(e));
	expect_alternates(c, e);
	struct guard guard = basic_auth_guard(c->options.auth, e->path, false);
	guard_release(&guard);
	return tree_awaits(c->options.tree) ? EINPROGRESS : 0;
}

/* Calls stat(2) for a file of an entry, or one beside it. Returns 0 or an errno. */
static int stat_beside(const struct cache *c, const struct cache_entry *e, const char *path, struct stat *st) {
	int (*stat_path)(const struct tree *, const char *, struct stat *) = e->prefetched ? tree_stat : tree_stat_at_once;
	return stat_path(c->options.tree, path, st) == -1 ? errno : 0;
}

/* Calls stat(2) for the file in a coding. Returns 0 or an errno. */
static int look_at(const struct cache *c, const struct cache_entry *e, enum coding coding, struct stat *st) {
	char path[PATH_MAX + SUFFIX_ROOM];
	return stat_beside(c, e, coded_path(e, coding, path), st);
}

int cache_entry_look(const struct cache *c, const struct cache_entry *e, struct file_version *version) {
	struct names *names = c->options.names;
	struct stat st;
	memset(version, 0, CODINGS * sizeof *version);
	if (!ignores_codings(e) && tree_is_remote(c->options.tree, e->path)) expect_codings(c, e, 0);
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

/* Returns the bytes of an alternate at a path, 0 if it may not be sent. Reports one that is out of date. */
static uint64_t alternate_size(const struct cache_entry *e, const struct file_version *original, enum alternate which,
							   const char *path, const struct stat *st) {
	const struct file_version version = file_version_of(st);
	if (!S_ISREG(st->st_mode) || !(st->st_mode & S_IROTH)) return 0;
	const bool old = alternate_outdated(which, &version, original);
	if (old) report_outdated(path, e->text, original);
	return old ? 0 : (uint64_t)st->st_size;
}

int cache_entry_alternates(const struct cache *c, const struct cache_entry *e, const struct file_version *original,
						   uint64_t *size) {
	char path[PATH_MAX + SUFFIX_ROOM];
	struct slice stem;
	struct stat st;
	memset(size, 0, ALTERNATES * sizeof *size);
	const unsigned may = may_have_alternates(e, &stem);
	if (!may) return 0;
	if (tree_is_remote(c->options.tree, e->path)) expect_alternates(c, e);
	for (int i = 0; i < ALTERNATES; i++) {
		if (!(may >> i & 1)) continue;
		if (names_lack(c->options.names, slice_of(alternate_path(stem, (enum alternate)i, path)))) continue;
		const int error = stat_beside(c, e, path, &st);
		if (error == EINPROGRESS) return error;
		if (!error) size[i] = alternate_size(e, original, (enum alternate)i, path, &st);
	}
	return 0;
}

/* Returns whether an encoded file may be sent in place of the original. Reports one that is older than that. */
static bool is_usable(const struct cache_entry *e, enum coding coding) {
	const struct file_version *beside = &e->version[coding], *original = &e->version[CODING_IDENTITY];
	char path[PATH_MAX + SUFFIX_ROOM];
	if (!S_ISREG(beside->mode) || !(beside->mode & S_IROTH)) return false;
	if (!original->mode || !file_version_older(beside, original)) return true;
	report_outdated(coded_path(e, coding, path), e->text, original);
	return false;
}

/* Takes the file at a path from what threads have found. Returns 0 or an errno. */
static int take_file(struct cache *c, const struct cache_entry *e, const char *path, struct representation **file) {
	struct remote_found *found = remote_find(c->options.tree->remote, path, opened(e));
	const bool reads = c->loaded < CACHE_LOADED_PARTS * c->options.bytes;
	if (found && !reads && !found->file) return ENOMEM; /* it would be in memory */
	return found ? representation_take(found, slice_of(path), &c->open, file) : errno;
}

/* Opens and loads the file in a coding. regular: it may be loaded with LOAD_UNSEEN. Returns 0 or an errno. */
static int open_file(struct cache *c, struct cache_entry *e, enum coding coding, bool regular) {
	char path[PATH_MAX + SUFFIX_ROOM];
	struct representation *f = NULL;
	(void)coded_path(e, coding, path);
	const bool reads = c->loaded < CACHE_LOADED_PARTS * c->options.bytes || key_file_named(e->path);
	if ((!reads || e->version[coding].size > REPRESENTATION_BODY_MAX) && !cache_may_open(c)) return EMFILE;
	const int fd = tree_open(c->options.tree, path, 0, !e->prefetched);
	const enum load how = !reads ? LOAD_OPEN : e->prefetched ? LOAD_WAITING : regular ? LOAD_UNSEEN : LOAD_AT_ONCE;
	int error;
	if (fd != -1) error = representation_load(fd, slice_of(path), how, &c->open, &f);
	else error = errno == EREMOTE ? take_file(c, e, path, &f) : errno;
	if (error || !f) return error;
	e->resource.representation[coding] = f;
	e->resource.available |= 1U << coding;
	e->version[coding] = f->version;
	return 0;
}

/* Returns the set of codings that can be generated from the others. */
static unsigned producible(const struct cache *c, const struct resource *r, const struct content_type *type) {
	const struct representation *identity = r->representation[CODING_IDENTITY];
	const struct representation *gzip = r->representation[CODING_GZIP];
	if (!identity) return gzip && !gzip->remote ? 1U << CODING_IDENTITY : 0; /* unpacking reads on the loop */
	if (!c->options.gzip_bytes || type->encoding.at) return 0;
	if (identity->size <= GZIP_LEAST || identity->size > GZIP_MOST) return 0;
	if (!gzip_worthwhile(slice_of(type->type))) return 0;
	const unsigned at_once = gzip ? 0 : 1U << CODING_GZIP;
	const unsigned later = r->available & CODINGS_LATER ? 0 : CODINGS_LATER;
	return at_once | (brotli_is_built ? later & 1U << CODING_BR : 0) | (zstd_is_built ? later & 1U << CODING_ZSTD : 0);
}

/* Returns the owner's Content-Encoding, that of the last pattern, for a file that is sent for its own path, or an
 * absent slice. */
static struct slice owners_encoding(const struct cache_entry *e, const struct header_set *headers) {
	struct slice encoding = {0};
	for (unsigned i = 0; headers && !e->is_substitute && !e->error && i < headers->count; i++) {
		struct slice list = headers->item[i].value;
		if (headers->item[i].detach || !header_named(&headers->item[i], "Content-Encoding")) continue;
		while (slice_next_element(&list, &encoding)) continue;
	}
	return encoding;
}

/* Finds out what the file is. Returns 0, or EINPROGRESS if that needs a part of it that is not in memory. */
static int find_type(struct cache_entry *e, const struct header_set *headers, struct content_type *type) {
	const struct representation *identity = e->resource.representation[CODING_IDENTITY];
	const struct representation *file = identity ? identity : e->resource.representation[CODING_GZIP];
	struct content_source source = {.path = e->path,
									.encoding = owners_encoding(e, headers),
									.packed = file && !identity,
									.start = SLICE(""),
									.more = true};
	source.named = e->is_alternate ? alternate_type_of(e->path) : content_type_of_name(&source);
	if (!content_type_needs_start(&source)) {
		*type = (struct content_type){.type = source.named};
		return 0;
	}
	if (file) {
		struct slice start;
		const int error = representation_start(file, e->prefetched, WORKSPACE(CONTENT_TYPE_START), &start);
		if (error == EINPROGRESS) return error;
		if (error) freshness_unread(&e->resource.freshness);
		if (!error) source.start = start;
		if (!error) source.more = file->stored > start.length;
	}
	*type = content_type_find(&source);
	return 0;
}

/* Returns whether other files may be dictionaries for a file: whether it is text, and the same for all clients. */
static bool may_be_different(const struct cache *c, const struct cache_entry *e, const struct content_type *type,
							 const struct header_set *headers) {
	const struct representation *identity = e->resource.representation[CODING_IDENTITY];
	if ((e->resource.available | e->resource.producible) == 1U << CODING_IDENTITY) return false; /* the usual case */
	if (!c->options.dictionary_bytes || !identity || e->is_substitute || e->error || type->encoding.at) return false;
	if (identity->size <= GZIP_LEAST || identity->size > DICTIONARY_MAX || !gzip_worthwhile(slice_of(type->type)))
		return false;
	if (e->restricted || e->resource.guard.permission != PERMISSION_OPEN || identity->remote) return false;
	return !header_find(headers, "Use-As-Dictionary") && !header_find(headers, "Set-Cookie");
}

/* Finds out whether a file has a hash in its name, in which it differs from its older versions, or may be offered to
 * browsers. It may not if the owner says how long it lasts. Browsers ask for a picture that comes twice in a page twice
 * because of the offered fields. */
static void find_wildcard(const struct cache *c, struct cache_entry *e, const char *type,
						  const struct header_set *headers) {
	const struct slice hash = cache_control_hash(e->path, type);
	e->wildcard = cache_versions_wildcard(e->path, type);
	const bool named = cache_versions_named(slice_rest(e->path, e->site), e->wildcard),
			   picture = slice_starts(slice_of(type), SLICE("image/"));
	e->resource.versioned = named && hash.at;
	e->resource.offered =
		named && !hash.at && !picture && c->options.cache_control && !header_find(headers, "Cache-Control");
}

/* Writes the fields of all representations, and counts their memory. missed: a file could not be opened. Returns 0,
 * EINPROGRESS or ENOMEM. */
static int write_all_fields(struct cache *c, struct cache_entry *e, const struct header_set *headers, bool missed) {
	struct resource *r = &e->resource;
	struct content_type type;
	int error = find_type(e, headers, &type);
	if (error) return error;
	struct field_options o = {.type = type.type,
							  .utf8 = type.utf8,
							  .encoding = type.encoding,
							  .headers = headers,
							  .is_substitute = e->is_substitute,
							  .error = e->error};
	r->producible = producible(c, r, &type);
	char match[CACHE_MATCH_MAX];
	if (may_be_different(c, e, &type, headers)) find_wildcard(c, e, o.type, headers);
	if (r->versioned) o.match = cache_versions_match(slice_rest(e->path, e->site), e->wildcard, false, match);
	if (r->offered)
		o.offer = cache_versions_match(slice_rest(e->path, e->site), e->wildcard, cache_control_is_page(o.type), match);
	o.varies = missed || (r->available | r->producible) != 1U << CODING_IDENTITY;
	bool restricted = e->restricted || r->guard.permission != PERMISSION_OPEN;
	if (c->options.cache_control)
		o.cache_control = cache_control_default(e->path, o.type, restricted, e->is_substitute);
	for (int i = 0; i < CODINGS && !error; i++) {
		o.coding = (enum coding)i;
		if (!r->representation[i]) continue;
		error = representation_write_fields(r->representation[i], &o);
		if (!error) representation_account(r->representation[i], &c->loaded);
	}
	return error;
}

/* Loads the files of an entry. told: by names_tell(). Returns 0 or an errno. */
static int load(struct cache *c, struct cache_entry *e, const struct header_set *headers, unsigned told,
				int64_t now_ms) {
	const struct timespec now = file_version_clock();
	/* a file without others beside it is opened without a stat(2), unless a descriptor may have to be freed first */
	const bool lately = told & NAMES_LATELY;
	bool alone = (told & ~(unsigned)NAMES_LATELY) == (NAMES_ITSELF | NAMES_REGULAR) && c->open < c->options.open;
	int error = tree_is_remote(c->options.tree, e->path) ? find_out(c, e) : 0;
	if (!error && !alone) error = cache_entry_look(c, e, e->version);
	if (error && error != ENOENT) return error;
	if (!error && (error = open_file(c, e, CODING_IDENTITY, alone))) return error;
	bool missed = false; /* a file exists, but could not be opened for a temporary reason */
	for (int i = CODING_IDENTITY + 1; i < CODINGS && !alone; i++) {
		if (!is_usable(e, (enum coding)i)) continue;
		int failed = open_file(c, e, (enum coding)i, false);
		if (failed == EINPROGRESS) return failed;
		if (!failed) error = 0;
		missed |= failed && docroot_error_is_temporary(failed);
		if (error && missed) error = failed; /* not ENOENT: there is a file */
	}
	if (error) return error;
	error = cache_entry_alternates(c, e, &e->version[CODING_IDENTITY], e->resource.alternate);
	if (error) return error;
	e->resource.freshness = freshness_loaded(e->version, now, missed, lately, now_ms);
	e->resource.guard = basic_auth_guard(c->options.auth, e->path, lately);
	if (tree_awaits(c->options.tree)) return EINPROGRESS;
	return write_all_fields(c, e, headers, missed);
}

/* Creates an entry and loads its files. told: by names_tell(). Returns 0 with *result, or an errno. */
static int entry_load(struct cache *c, const struct lookup *l, unsigned told, int64_t now_ms,
					  struct cache_entry **result) {
	if (!told) return ENOENT;
	if (l->path.length >= PATH_MAX) return ENOENT;
	if (told & NAMES_DIRECTORY) return EISDIR;
	struct cache_entry *e = malloc(sizeof *e + l->path.length + 1); /* not calloc(3): see representation_new() */
	if (!e) return ENOMEM;
	*e = (struct cache_entry){.references = 1,
							  .restricted = l->restricted,
							  .is_substitute = l->is_substitute,
							  .error = l->error,
							  .is_alternate = l->is_alternate,
							  .site = l->site,
							  .prefetched = l->prefetched,
							  .path = {.at = e->text, .length = l->path.length}};
	*text_copy(e->text, l->path) = '\0';
	int error = load(c, e, l->headers, told, now_ms);
	if (error == ENAMETOOLONG) error = ENOENT;
	e->prefetched = true; /* now it is in memory, and checks hardly wait */
	if (error == EACCES) tree_report_unserved(c->options.tree, e->text);
	if (error) cache_entry_release(e);
	else *result = e;
	return error;
}

int cache_entry_new(struct cache *c, const struct lookup *l, int64_t now_ms, struct cache_entry **result) {
	struct names *names = c->options.names;
	const struct names_told told = names_tell(names, l->path);
	int error = entry_load(c, l, told.what, now_ms, result);
	if (!(told.what & NAMES_LATELY)) return error;
	/* what was known of its directory is right if the file is the one that was there, and has not just changed */
	struct cache_entry *e = error ? NULL : *result;
	if (e ? freshness_settled(&e->resource.freshness) &&
				names_told_of(names, e->path, &told, &e->version[CODING_IDENTITY])
		  : error != ENOENT)
		return error;
	if (e) cache_entry_release(e);
	(void)names_lack(names, l->path); /* checks the directory again */
	return entry_load(c, l, names_tell(names, l->path).what, now_ms, result);
}
