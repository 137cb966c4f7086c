/* representation.c - see representation.h. */
#include "gatling/site/representation.h"

#include <assert.h>
#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/owfat.h"
#include "gatling/base/unserved.h"
#include "gatling/base/utf8.h"
#include "gatling/http/date.h"
#include "gatling/http/freshness.h"
#include "gatling/http/hpack.h"
#include "gatling/site/digest.h"

enum {
	READ_ATTEMPTS = 3, /* at a file that changes while it is read into memory */
	ETAG_BYTES = 16,   /* of the hash that the entity-tag shows */
	ETAG_ROOM = 2 * ETAG_BYTES + 8,
	FIELDS_ROOM_MIN = 640 /* bytes of the field lines but for the owner's and the media type */
};

struct counted_representation {
	struct representation file; /* first: a file is its entry */
	unsigned references;
	struct file_version identity;
	size_t *account;                       /* what its memory is counted in; NULL: nothing */
	unsigned *open;                        /* and its descriptor; NULL: it has none */
	struct counted_representation *origin; /* what it has been made of, NULL: it has been loaded */
	bool borrows;                          /* body and fd are the origin's */
	char etag[ETAG_ROOM];
	char *text; /* fields, block, and the media type if it is the owner's */
	size_t text_size;
};

static const struct counted_representation *entry_of(const struct representation *file) {
	return (const struct counted_representation *)file;
}

void representation_retain(struct representation *file) { ((struct counted_representation *)file)->references++; }

bool representation_shared(const struct representation *file) {
	const struct counted_representation *e = entry_of(file);
	return e->references > 1 || (e->borrows && e->origin->references > 1);
}

void representation_release(void *file) {
	struct counted_representation *e = file;
	if (--e->references) return;
	if (e->account) *e->account -= representation_memory(&e->file);
	if (e->open) --*e->open;
	if (!e->borrows) {
		if (e->file.fd != -1) close(e->file.fd);
		free((char *)e->file.body);
	}
	if (e->origin) representation_release(e->origin);
	free(e->text);
	free(e);
}

static struct counted_representation *entry_new(void) {
	struct counted_representation *e = calloc(1, sizeof *e);
	if (!e) return NULL;
	e->references = 1;
	e->file.fd = -1;
	return e;
}

const struct file_version *representation_version(const struct representation *file) {
	return &entry_of(file)->identity;
}

size_t representation_memory(const struct representation *file) {
	const struct counted_representation *e = entry_of(file);
	return e->text_size + (file->body && !e->borrows ? file->size : 0);
}

struct gzip_bytes representation_stored(const struct representation *f) {
	return (struct gzip_bytes){.memory = f->body, .file = f->fd, .length = f->stored};
}

bool representation_changed(const struct representation *file) {
	struct stat st;
	if (file->fd == -1) return false;
	if (fstat(file->fd, &st) == -1) return true;
	struct file_version now = file_version_of(&st);
	return !file_version_same(&now, &entry_of(file)->identity);
}

bool representation_is_text(const struct representation *file) {
	char start[REPRESENTATION_START];
	size_t length = file->size < REPRESENTATION_START ? (size_t)file->size : REPRESENTATION_START;
	if (file->body) return utf8_is_text((struct slice){.at = file->body, .length = length}, file->size > length);
	return pread(file->fd, start, length, 0) == (ssize_t)length &&
		   utf8_is_text((struct slice){.at = start, .length = length}, file->size > length);
}

bool representation_gone(const struct representation *file) {
	struct stat st;
	return file->fd != -1 && fstat(file->fd, &st) == 0 && !st.st_nlink;
}

/* --- loading --- */

/* The whole file, or NULL with errno; EAGAIN: it does not have the size that it had. */
static char *read_body(int fd, size_t size) {
	char *body = malloc(size ? size : 1);
	for (size_t have = 0; body && have < size;) {
		ssize_t n = pread(fd, body + have, size - have, (off_t)have);
		if (n > 0) {
			have += (size_t)n;
			continue;
		}
		int error = n == 0 ? EAGAIN : errno;
		free(body);
		body = NULL;
		errno = error;
	}
	return body;
}

/* Fills identity and, for a small file, body; a file that keeps changing is sent from its descriptor. 0 or an errno. */
static int load(struct counted_representation *e) {
	struct stat st;
	if (fstat(e->file.fd, &st) == -1) return errno;
	if (S_ISDIR(st.st_mode)) return EISDIR;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH)) return EACCES;
	for (int i = 0; i < READ_ATTEMPTS && st.st_size <= REPRESENTATION_BODY_MAX; i++) {
		struct file_version before = file_version_of(&st);
		char *body = read_body(e->file.fd, (size_t)st.st_size);
		if (!body && errno != EAGAIN) return errno;
		if (fstat(e->file.fd, &st) == -1) {
			free(body);
			return errno;
		}
		struct file_version after = file_version_of(&st);
		if (body && file_version_same(&before, &after)) {
			e->file.body = body;
			close(e->file.fd);
			e->file.fd = -1;
			break;
		}
		free(body);
	}
	e->identity = file_version_of(&st);
	e->file.size = e->file.stored = (uint64_t)st.st_size;
	return 0;
}

/* A private key (PEM) that somebody has left where everybody may read it is no file to be served. */
static bool is_key(struct slice path, const struct representation *f) {
	static const char mark[] = "PRIVATE KEY-----";
	return unserved_is_key(path) && f->body && memmem(f->body, f->size, mark, sizeof mark - 1);
}

static void write_etag(struct counted_representation *e, const unsigned char *hash, const char *suffix) {
	char *out = e->etag;
	*out++ = '"';
	for (int i = 0; i < ETAG_BYTES; i++) {
		*out++ = fmt_tohex((char)(hash[i] >> 4));
		*out++ = fmt_tohex((char)(hash[i] & 15));
	}
	out += fmt_str(out, suffix);
	*out++ = '"';
	e->file.validators.etag = (struct slice){.at = e->etag, .length = (size_t)(out - e->etag)};
}

/* Of the content; that of a large file has to be read first, beside the loop. */
static void make_etag(struct counted_representation *e) {
	static_assert(SHA256_DIGEST_LENGTH == (int)DIGEST_LENGTH, "digest.h has the same hash");
	unsigned char hash[SHA256_DIGEST_LENGTH];
	bool known = e->file.body;
	if (known) SHA256((const unsigned char *)e->file.body, e->file.size, hash);
	else known = !file_version_recent(&e->identity, time(NULL)) && digest_find(&e->identity, hash);
	if (known) write_etag(e, hash, "");
}

int representation_load(int fd, struct slice path, unsigned *open, struct representation **file) {
	struct counted_representation *e = entry_new();
	if (!e) {
		close(fd);
		return ENOMEM;
	}
	e->file.fd = fd;
	int error = load(e);
	if (!error && is_key(path, &e->file)) error = EACCES;
	if (error) {
		representation_release(e);
		return error;
	}
	if (e->file.fd != -1) {
		e->open = open;
		++*open;
	}
	make_etag(e);
	*file = &e->file;
	return 0;
}

/* --- fields --- */

/* What the owner says of a field. NULL: nothing. */
static const struct header_item *owner_says(const struct header_set *set, const char *name) {
	for (unsigned i = 0; set && i < set->count; i++)
		if (header_named(&set->item[i], name)) return &set->item[i];
	return NULL;
}

struct lines {
	char *start, *at;
};

static void put(struct lines *l, struct slice s) {
	memcpy(l->at, s.at, s.length);
	l->at += s.length;
}

static void put_line(struct lines *l, struct slice name, struct slice value) {
	put(l, name);
	put(l, SLICE(": "));
	put(l, value);
	put(l, SLICE("\r\n"));
}

static void put_length(struct lines *l, const struct representation *f) {
	put(l, SLICE("Content-Length: "));
	l->at += fmt_ulonglong(l->at, f->size);
	put(l, SLICE("\r\n"));
}

static void put_coding(struct lines *l, enum coding coding) {
	if (coding != CODING_IDENTITY) put_line(l, SLICE("Content-Encoding"), coding_name[coding]);
}

/* The media type may be the owner's: then it is kept at the end of the text. */
static void put_type(struct lines *l, struct representation *f, const struct field_options *d) {
	const struct header_item *type = owner_says(d->headers, "Content-Type");
	struct slice value = {.at = d->type, .length = strlen(d->type)};
	f->type = d->type;
	if (type && !type->detach) value = type->value;
	if (!type || !type->detach) put_line(l, SLICE("Content-Type"), value);
	if (!owner_says(d->headers, "X-Content-Type-Options")) put(l, SLICE(NOSNIFF_LINE));
}

static void put_validators(struct lines *l, struct counted_representation *e) {
	struct representation *f = &e->file;
	time_t now = time(NULL), modified = e->identity.modified.tv_sec;
	/* no date to come (RFC 9110, section 8.8.2.1), and none of a year that HTTP cannot write */
	f->validators.last_modified = modified > now ? now : modified < 0 ? 0 : modified;
	put(l, f->gzipped ? SLICE("Accept-Ranges: none\r\n") : SLICE("Accept-Ranges: bytes\r\n"));
	if (f->validators.etag.at) put_line(l, SLICE("ETag"), f->validators.etag);
	put(l, SLICE("Last-Modified: "));
	f->validators.date = (struct slice){.at = l->at, .length = DATE_LENGTH};
	l->at += date_format(l->at, f->validators.last_modified);
	put(l, SLICE("\r\n"));
}

static void put_owner(struct lines *l, const struct field_options *d) {
	const struct header_item *vary = owner_says(d->headers, "Vary");
	if (d->varies || (vary && !vary->detach)) {
		put(l, SLICE("Vary: "));
		if (d->varies) put(l, SLICE("Accept-Encoding"));
		if (d->varies && vary && !vary->detach) put(l, SLICE(", "));
		if (vary && !vary->detach) put(l, vary->value);
		put(l, SLICE("\r\n"));
	}
	const struct header_item *cache_control = owner_says(d->headers, "Cache-Control");
	bool unsaid = cache_control && d->stands_in && (d->error || freshness_page(d->type)) && header_lasts(cache_control);
	if (d->cache_control.at && (!cache_control || unsaid)) put_line(l, SLICE("Cache-Control"), d->cache_control);
	for (unsigned i = 0; d->headers && i < d->headers->count; i++) {
		const struct header_item *item = &d->headers->item[i];
		if (item->detach || header_named(item, "Vary") || header_named(item, "Content-Type")) continue;
		if (item != cache_control || !unsaid) put_line(l, item->name, item->value);
	}
}

/* The fields are complete. */
static void finish(struct counted_representation *e, const struct lines *l, char *block) {
	e->file.fields = (struct slice){.at = l->start, .length = (size_t)(l->at - l->start)};
	e->file.block = (struct slice){.at = block, .length = hpack_fields(e->file.fields, block)};
	e->text = l->start;
}

static size_t length_of(const struct lines *l) { return (size_t)(l->at - l->start); }

int representation_dress(struct representation *f, const struct field_options *d) {
	struct counted_representation *e = (struct counted_representation *)f;
	size_t room = FIELDS_ROOM_MIN + strlen(d->type) + (d->headers ? d->headers->octets : 0);
	const struct header_item *type = owner_says(d->headers, "Content-Type");
	size_t type_room = type && !type->detach ? type->value.length + 1 : 0;
	char *text = malloc(room + HPACK_BOUND(room) + type_room);
	if (!text) return ENOMEM;
	struct lines l = {.start = text, .at = text};
	put_length(&l, f);
	f->type_at = length_of(&l);
	f->coding = d->coding;
	put_coding(&l, d->coding);
	put_type(&l, f, d);
	f->validators_at = length_of(&l);
	put_validators(&l, e);
	f->owner_at = length_of(&l);
	put_owner(&l, d);
	finish(e, &l, text + room);
	if (type_room) {
		char *own = text + room + HPACK_BOUND(room);
		memcpy(own, type->value.at, type->value.length);
		own[type->value.length] = '\0';
		f->type = own;
	}
	e->text_size = room + HPACK_BOUND(room) + type_room;
	return 0;
}

/* --- made of another --- */

/* The same entity-tag with a suffix inside its quotes. */
static void derive_etag(struct counted_representation *e, const char *suffix) {
	struct slice etag = e->origin->file.validators.etag;
	if (!etag.at) return;
	size_t n = etag.length - 1;
	memcpy(e->etag, etag.at, n);
	n += fmt_str(e->etag + n, suffix);
	e->etag[n++] = '"';
	e->file.validators.etag = (struct slice){.at = e->etag, .length = n};
}

static struct slice part(const struct representation *f, size_t from, size_t to) {
	return (struct slice){.at = f->fields.at + from, .length = to - from};
}

/* How one is made of another. */
struct derivation {
	enum coding coding;
	const char *suffix;          /* of the entity-tag, or */
	const unsigned char *digest; /* what it is made of, NULL: of that of the origin */
	bool unpacks;
	uint64_t size;
};

/* NULL: ENOMEM. */
static struct counted_representation *derive(struct representation *origin, const struct derivation *d) {
	struct counted_representation *e = entry_new();
	size_t room = FIELDS_ROOM_MIN + origin->fields.length;
	char *text = e ? malloc(room + HPACK_BOUND(room)) : NULL;
	if (!text) {
		free(e);
		return NULL;
	}
	struct representation *f = &e->file;
	representation_retain(origin);
	e->origin = (struct counted_representation *)origin;
	e->identity = e->origin->identity;
	e->text_size = room + HPACK_BOUND(room);
	f->size = d->size;
	f->type = origin->type;
	f->coding = d->coding;
	f->gzipped = d->unpacks;
	if (d->digest) write_etag(e, d->digest, "");
	else derive_etag(e, d->suffix);
	struct lines l = {.start = text, .at = text};
	put_coding(&l, origin->coding); /* to see how long it is */
	size_t type_at = origin->type_at + length_of(&l);
	l.at = l.start;
	put_length(&l, f);
	f->type_at = length_of(&l);
	put_coding(&l, d->coding);
	put(&l, part(origin, type_at, origin->validators_at));
	f->validators_at = length_of(&l);
	put_validators(&l, e);
	f->owner_at = length_of(&l);
	put(&l, part(origin, origin->owner_at, origin->fields.length));
	finish(e, &l, text + room);
	return e;
}

/* Shares what the origin has stored. */
static struct representation *borrow(struct counted_representation *e, uint64_t stored) {
	const struct representation *origin = &e->origin->file;
	e->borrows = true;
	e->file.body = origin->body;
	e->file.fd = origin->fd;
	e->file.stored = stored;
	return &e->file;
}

struct representation *representation_gzipped(struct representation *identity, char *body, uint64_t size,
											  size_t *account) {
	struct counted_representation *e =
		derive(identity, &(struct derivation){.coding = CODING_GZIP, .suffix = "-gz", .size = size});
	if (!e) {
		free(body);
		return NULL;
	}
	e->file.body = body;
	e->file.stored = size;
	e->account = account;
	*account += representation_memory(&e->file);
	return &e->file;
}

struct representation *representation_gunzipped(struct representation *gzip, uint64_t size) {
	struct derivation d = {.coding = CODING_IDENTITY, .suffix = "-un", .size = size, .unpacks = true};
	struct counted_representation *e = derive(gzip, &d);
	return e ? borrow(e, gzip->size) : NULL;
}

struct representation *representation_tagged(struct representation *file, const unsigned char *digest) {
	struct counted_representation *e =
		derive(file, &(struct derivation){.coding = file->coding, .digest = digest, .size = file->size});
	return e ? borrow(e, file->stored) : NULL;
}
