/* representation.c - see representation.h. */
#include "gatling/site/cache/representation.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gatling/base/digest.h"
#include "gatling/base/file_read.h"
#include "gatling/base/slice.h"
#include "gatling/files/content_hash.h"
#include "gatling/files/key_file.h"
#include "gatling/media/content_type.h"
#include "io/at_once.h"

enum {
	READ_ATTEMPTS = 3,          /* to read a file into memory that changes meanwhile */
	READ_UNSEEN_MAX = 16 * 1024 /* bytes read of a file of unknown size: most are smaller */
};

void representation_retain(struct representation *file) { file->references++; }

bool representation_shared(const struct representation *f) {
	return f->references > 1 || (f->origin && f->origin->references > 1);
}

void representation_release(void *file) {
	struct representation *f = file;
	if (--f->references) return;
	if (f->account) *f->account -= representation_memory(f);
	if (f->open) --*f->open;
	if (f->origin) {
		representation_release(f->origin);
	} else {
		if (f->map) munmap(f->map, f->size);
		if (f->remote) remote_file_close(f->remote);
		else if (f->fd != -1) close(f->fd);
		if (f->encoded) encoded_release(f->encoded);
		else free((char *)f->body);
		free(f->start);
	}
	free((char *)f->fields.at);
	free(f->digest);
	free(f);
}

static struct representation *representation_new(void) {
	struct representation *f = malloc(sizeof *f); /* glibc's calloc(3) does not reuse what was just freed */
	if (f) *f = (struct representation){.references = 1, .fd = -1};
	return f;
}

size_t representation_memory(const struct representation *f) {
	return f->text_size + (f->body && !f->origin ? f->size : 0);
}

void representation_account(struct representation *f, size_t *account) {
	f->account = account;
	*account += representation_memory(f);
}

void representation_digested(struct representation *f, const unsigned char *digest) {
	enum { BASE64_LENGTH = (DIGEST_LENGTH + 2) / 3 * 4 };
	static const struct slice before = SLICE("Repr-Digest: sha-256=:"), after = SLICE(":\r\n");
	char *line = f->digest ? NULL : malloc(before.length + BASE64_LENGTH + after.length + 1);
	if (!line) return;
	char *at = line;
	at = text_copy(at, before);
	at += EVP_EncodeBlock((unsigned char *)at, digest, DIGEST_LENGTH);
	*text_copy(at, after) = '\0';
	f->digest = line;
}

struct slice representation_digest(const struct representation *f) {
	return f->digest ? slice_of(f->digest) : (struct slice){0};
}

struct gzip_bytes representation_stored(const struct representation *f) {
	return (struct gzip_bytes){.memory = f->body, .file = f->fd, .length = f->stored};
}

bool representation_changed(const struct representation *file) {
	struct stat st;
	if (file->fd == -1 || file->remote) return false;
	if (fstat(file->fd, &st) == -1) return true;
	struct file_version now = file_version_of(&st);
	return !file_version_same(&now, &file->version);
}

bool representation_unwritten(void *file, const struct stat *now) {
	const struct representation *f = file;
	const struct file_version version = file_version_of(now);
	return !file_version_rewritten(&f->version, &version);
}

int representation_start(const struct representation *file, bool waits, char *room, struct slice *start) {
	const size_t length = file->stored < CONTENT_TYPE_START ? (size_t)file->stored : CONTENT_TYPE_START;
	*start = (struct slice){.at = file->body ? file->body : file->start ? file->start : room, .length = length};
	if (file->body || file->start) return 0;
	if (file->remote) return EAGAIN; /* it keeps changing */
	return waits ? file_read_at(file->fd, room, length, 0) : file_read_at_once_to(file->fd, room, length);
}

bool representation_gone(const struct representation *file) {
	struct stat st;
	return file->fd != -1 && !file->remote && fstat(file->fd, &st) == 0 && !st.st_nlink;
}

/* --- loading --- */

/* Calls fstat(2). Returns 0, or an errno if it fails or the file may not be sent. */
static int look(int fd, struct stat *st) {
	if (fstat(fd, st) == -1) return errno;
	if (S_ISDIR(st->st_mode)) return EISDIR;
	return S_ISREG(st->st_mode) && st->st_mode & S_IROTH ? 0 : EACCES;
}

/* Reads before fstat(2), which saves a second one: a file that has not changed recently has not changed since it was
 * read. Returns 0, with or without a body, or an errno. */
static int load_unseen(struct representation *f, struct stat *st) {
	char text[READ_UNSEEN_MAX + 1];
	const struct timespec begun = file_version_clock();
	const ssize_t length = io_pread_at_once(f->fd, text, sizeof text, 0);
	const int error = look(f->fd, st);
	if (error || length < 0 || length != st->st_size || length > READ_UNSEEN_MAX) return error;
	const struct file_version version = file_version_of(st);
	/* the clock may have been set back meanwhile */
	if (file_version_recent_at(&version, begun) || file_version_recent(&version)) return 0;
	char *body = malloc((size_t)length + 1);
	if (!body) return ENOMEM;
	memcpy(body, text, (size_t)length);
	f->body = body;
	return 0;
}

/* Fills in version and size. Fills in body, and closes fd, for a small file that does not keep changing; others are
 * sent from fd. Returns 0 or an errno. */
static int load(struct representation *f, enum load how) {
	struct stat st;
	int error = how == LOAD_UNSEEN ? load_unseen(f, &st) : look(f->fd, &st);
	if (error) return error;
	for (int i = 0; how != LOAD_OPEN && !f->body && i < READ_ATTEMPTS && st.st_size <= REPRESENTATION_BODY_MAX; i++) {
		const struct file_version before = file_version_of(&st);
		char *body = (how == LOAD_WAITING ? file_read : file_read_at_once)(f->fd, (size_t)st.st_size);
		if (!body && errno != EAGAIN) return errno;
		error = look(f->fd, &st);
		const struct file_version after = error ? (struct file_version){0} : file_version_of(&st);
		if (body && file_version_same(&before, &after)) f->body = body;
		else free(body);
		if (error) return error;
	}
	f->version = file_version_of(&st);
	f->size = f->stored = (uint64_t)st.st_size;
	if (!f->body) return 0;
	close(f->fd);
	f->fd = -1;
	return 0;
}

/* Maps a recently changed file, which is copied while it is sent, if it is larger than the pieces that are read
 * otherwise. Without a map it is read. */
static void map_file(struct representation *f) {
	if (f->fd == -1 || f->remote || !file_version_recent(&f->version) || f->size <= IOB_FILE_PIECE ||
		f->size > REPRESENTATION_MAP_MAX)
		return;
	void *map = mmap(NULL, f->size, PROT_READ, MAP_SHARED, f->fd, 0);
	if (map != MAP_FAILED) f->map = map;
}

/* Returns 0 if it holds no key, or EACCES, also if that cannot be found out: keys are not served even if everybody may
 * read them. Returns another errno if it cannot be read now. content: as much as is known, or absent. */
static int look_for_key(struct slice path, const struct representation *f, enum load how, struct slice content) {
	if (key_file_is_of_tls(&f->version)) return EACCES;
	if (!key_file_named(path)) return 0;
	if (key_file_is_opaque(path, f->size)) return EACCES;
	if (!content.at && f->remote) return EACCES;
	char *text = content.at ? NULL : (how == LOAD_WAITING ? file_read : file_read_at_once)(f->fd, (size_t)f->size);
	if (!content.at && !text) return errno == EAGAIN ? EACCES : errno; /* EAGAIN: it has become shorter */
	if (text) content = (struct slice){.at = text, .length = (size_t)f->size};
	const bool has_key = content.length < f->size || key_file_has_key(content);
	free(text);
	return has_key ? EACCES : 0;
}

/* Writes the end of an entity-tag. That of a large file has the size, so that it can be told from most others before
 * the file is hashed. */
static char *put_etag_end(char *at, const struct representation *f) {
	if (f->size > CONTENT_HASH_SOON) at = text_copy_number(text_copy(at, SLICE("-")), f->size);
	return text_copy(at, SLICE("\""));
}

static void write_etag(struct representation *f, const unsigned char *hash) {
	char *at = text_copy(f->etag, SLICE("\""));
	for (int i = 0; i < CONTENT_HASH_LENGTH; i++) at = text_copy_hex(at, hash[i]);
	at = put_etag_end(at, f);
	f->validators.etag = (struct slice){.at = f->etag, .length = (size_t)(at - f->etag)};
}

/* Makes the entity-tag from the hash, if that is known, or from the content in memory. A large file is hashed by a
 * thread later. */
static void make_etag(struct representation *f) {
	unsigned char hash[CONTENT_HASH_LENGTH];
	bool lasts = !file_version_recent(&f->version), known = lasts && content_hash_find(&f->version, hash);
	if (!known && f->body) {
		content_hash_memory(f->body, f->size, hash);
		if (lasts) content_hash_keep(&f->version, hash);
		known = true;
	}
	if (known) write_etag(f, hash);
	else if (f->size > CONTENT_HASH_SOON)
		f->validators.etag_end = (struct slice){.at = f->etag, .length = (size_t)(put_etag_end(f->etag, f) - f->etag)};
}

/* Ends a function that loads a file: does the rest if error is 0, which it returns. */
static int finish(struct representation *f, int error, unsigned *open, struct representation **file) {
	if (error) {
		representation_release(f);
		return error;
	}
	if (f->fd != -1) {
		f->open = open;
		++*open;
	}
	map_file(f);
	make_etag(f);
	*file = f;
	return 0;
}

int representation_load(int fd, struct slice path, enum load how, unsigned *open, struct representation **file) {
	struct representation *f = representation_new();
	if (!f) {
		close(fd);
		return ENOMEM;
	}
	f->fd = fd;
	io_no_read_ahead(fd);
	int error = load(f, how);
	if (!error) error = look_for_key(path, f, how, (struct slice){.at = f->body, .length = (size_t)f->size});
	return finish(f, error, open, file);
}

int representation_take(struct remote_found *found, struct slice path, unsigned *open, struct representation **file) {
	if (found->error || found->target_error) return found->error ? found->error : found->target_error;
	if (found->content_error) return found->content_error == EINVAL ? EACCES : found->content_error;
	if (!(found->content.st_mode & S_IROTH)) return EACCES;
	struct representation *f = representation_new();
	if (!f) return ENOMEM;
	f->version = file_version_of(&found->content);
	f->size = f->stored = (uint64_t)found->content.st_size;
	f->remote = found->file;
	if (f->remote) f->fd = remote_file_descriptor(f->remote);
	if (f->remote) f->start = found->start;
	else f->body = found->start;
	const struct slice content = {.at = found->start, .length = found->length};
	const int error = look_for_key(path, f, LOAD_WAITING, content);
	found->start = NULL;
	found->file = NULL;
	found->taken = true;
	return finish(f, error, open, file);
}

/* --- derived from another --- */

enum {
	DICTIONARY_SAID = 4 /* bytes of its digest, in an entity-tag: few have a difference to the same version of a file */
};

/* Writes the entity-tag of the origin in a coding that was made from it. */
static char *put_coded_etag(char *at, const struct representation *origin, enum coding coding) {
	const struct slice etag = origin->validators.etag;
	at = text_copy(at, slice_first(etag, etag.length - 1));
	return TEXT_JOIN(at, SLICE("-"), slice_rest(coding_suffix[coding], 1), SLICE("\""));
}

/* Appends to the entity-tag of the origin, inside the quotes, what was done to its content. */
static void derive_etag(struct representation *f, const struct representation *origin,
						const unsigned char *dictionary) {
	const struct slice etag = origin->validators.etag;
	if (!etag.at) return;
	const bool coded = !f->gzipped && !dictionary && f->coding != origin->coding;
	char *at =
		coded ? put_coded_etag(f->etag, origin, f->coding) : text_copy(f->etag, slice_first(etag, etag.length - 1));
	if (f->gzipped) at = text_copy(at, SLICE("-un"));
	if (dictionary) at = TEXT_JOIN(at, SLICE("-"), coding_name[f->coding], SLICE("-"));
	for (int i = 0; dictionary && i < DICTIONARY_SAID; i++) at = text_copy_hex(at, dictionary[i]);
	if (!coded) at = text_copy(at, SLICE("\""));
	f->validators.etag = (struct slice){.at = f->etag, .length = (size_t)(at - f->etag)};
}

/* Returns a representation of the same file without entity-tag and fields, or NULL without memory. */
static struct representation *derived(const struct representation *origin, enum coding coding, uint64_t size) {
	struct representation *f = representation_new();
	if (!f) return NULL;
	f->version = origin->version;
	f->size = size;
	f->coding = coding;
	f->gzipped = origin->coding == CODING_GZIP && coding == CODING_IDENTITY;
	return f;
}

/* Writes the fields of f. Returns f, or NULL without memory. */
static struct representation *with_fields(struct representation *f, const struct representation *origin) {
	if (representation_derive_fields(f, origin) == 0) return f;
	representation_release(f);
	return NULL;
}

/* Returns a representation with the fields of the origin, except those of the coding. content_hash: a hash for the
 * entity-tag, or NULL to derive that, too. dictionary: the digest of that of a difference, or NULL. Returns NULL
 * without memory. */
static struct representation *derive(const struct representation *origin, enum coding coding, uint64_t size,
									 const unsigned char *content_hash, const unsigned char *dictionary) {
	struct representation *f = derived(origin, coding, size);
	if (!f) return NULL;
	if (content_hash) write_etag(f, content_hash);
	else derive_etag(f, origin, dictionary);
	return with_fields(f, origin);
}

/* Gives f its content, and adds its memory to *account. Returns f. */
static struct representation *keep_in_memory(struct representation *f, const char *body, size_t *account) {
	f->body = body;
	f->stored = f->size;
	representation_account(f, account);
	return f;
}

/* Has f share the body or descriptor of the origin. Returns f, which may be NULL. */
static struct representation *borrow(struct representation *f, struct representation *origin) {
	if (!f) return NULL;
	representation_retain(origin);
	f->origin = origin;
	f->body = origin->body;
	f->fd = origin->fd;
	f->remote = origin->remote;
	f->map = origin->map;
	f->stored = origin->stored;
	return f;
}

struct representation *representation_encoded(struct representation *identity, struct encoded *encoded,
											  size_t *account) {
	struct representation *f = derive(identity, encoded->coding, encoded->content.length, NULL, NULL);
	if (!f) {
		encoded_release(encoded);
		return NULL;
	}
	f->encoded = encoded;
	return keep_in_memory(f, encoded->content.at, account);
}

struct representation *representation_unsent(const struct representation *identity, enum coding coding) {
	return derive(identity, coding, 0, NULL, NULL);
}

bool representation_has_coded(const struct representation *identity, enum coding coding, const struct request *q) {
	char etag[sizeof identity->etag];
	if (!identity->validators.etag.at) return false;
	const char *end = put_coded_etag(etag, identity, coding);
	return precondition_has(q, (struct slice){.at = etag, .length = (size_t)(end - etag)});
}

struct representation *representation_of_difference(const struct representation *identity, const struct request *q) {
	char start[sizeof identity->etag];
	const struct slice etag = identity->validators.etag;
	if (!etag.at) return NULL;
	const char *end = TEXT_JOIN(start, slice_first(etag, etag.length - 1), SLICE("-dc"));
	const struct slice held = precondition_starting(q, (struct slice){.at = start, .length = (size_t)(end - start)});
	if (held.length != (size_t)(end - start) + strlen("z-") + 2 * DICTIONARY_SAID + strlen("\"")) return NULL;
	struct representation *f = derived(identity, CODING_DCZ, 0);
	if (!f) return NULL;
	f->validators.etag = (struct slice){.at = f->etag, .length = held.length};
	memcpy(f->etag, held.at, held.length);
	return with_fields(f, identity);
}

struct representation *representation_difference(struct representation *identity, enum coding coding,
												 const unsigned char *digest, char *body, uint64_t size,
												 size_t *account) {
	struct representation *f = derive(identity, coding, size, NULL, digest);
	if (f) return keep_in_memory(f, body, account);
	free(body);
	return NULL;
}

struct representation *representation_copied(struct representation *file, char *body, size_t *account) {
	struct representation *f = derive(file, file->coding, file->size, NULL, NULL);
	if (!f) {
		free(body);
		return NULL;
	}
	return keep_in_memory(f, body, account);
}

struct representation *representation_gunzipped(struct representation *gzip, uint64_t size) {
	return borrow(derive(gzip, CODING_IDENTITY, size, NULL, NULL), gzip);
}

struct representation *representation_tagged(struct representation *file, const unsigned char *content_hash) {
	struct representation *f = borrow(derive(file, file->coding, file->size, content_hash, NULL), file);
	if (f && file->digest) f->digest = strdup(file->digest);
	return f;
}
