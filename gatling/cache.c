/* cache.c - see cache.h. A hash table with chains and a list from the most to the least recently used. What does not
 * exist is not remembered: nobody can fill the table with what is not there. */
#include "gatling/cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/date.h"
#include "gatling/hash.h"
#include "gatling/hpack.h"
#include "gatling/mime.h"
#include "gatling/owfat.h"
#include "gatling/platform.h"

enum {
	BUCKETS = 8192,
	READ_ATTEMPTS = 3, /* at a file that changes while it is read into memory */
	ETAG_BYTES = 16,   /* of the hash that the entity-tag shows */
	ETAG_LENGTH = 2 * ETAG_BYTES + 2,
	FIELDS_LENGTH_MAX = 512,
	RECENT_S = 2 /* a file changed so shortly before it was read may change again without its times showing it */
};

/* Everything stat(2) says that changes when a file does. */
struct identity {
	dev_t device;
	ino_t inode;
	mode_t mode;
	off_t size;
	struct timespec modified, changed;
};

struct entry {
	struct file file; /* first: a file is its entry */
	unsigned references;
	bool recent; /* see RECENT_S */
	uint64_t hash;
	int64_t checked_ms;
	struct identity identity;
	struct entry *chain;
	struct entry *newer, *older;
	char etag[ETAG_LENGTH];
	char fields[FIELDS_LENGTH_MAX], block[FIELDS_LENGTH_MAX];
	size_t path_length;
	char path[];
};

struct cache {
	int root;
	bool symlinks_inside;
	uint64_t seed;
	unsigned files, descriptors, descriptors_max;
	size_t bytes;
	struct entry *newest, *oldest;
	struct entry *bucket[BUCKETS];
};

struct cache *cache_new(int root, bool symlinks_inside, unsigned descriptors) {
	struct cache *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->root = root;
	c->symlinks_inside = symlinks_inside;
	c->descriptors_max = descriptors;
	c->seed = (uint64_t)(uintptr_t)c; /* the paths in the table are the owner's, not the clients' */
	return c;
}

void file_retain(struct file *file) { ((struct entry *)file)->references++; }

void file_release(void *file) {
	struct entry *e = file;
	if (--e->references) return;
	if (e->file.fd != -1) close(e->file.fd);
	free((char *)e->file.body);
	free(e);
}

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

static void drop(struct cache *c, struct entry *e) {
	struct entry **link = &c->bucket[e->hash % BUCKETS];
	while (*link != e) link = &(*link)->chain;
	*link = e->chain;
	age_unlink(c, e);
	c->files--;
	if (e->file.body) c->bytes -= e->file.size;
	else c->descriptors--;
	file_release(&e->file);
}

static bool over_limit(const struct cache *c) {
	return c->files > CACHE_FILES_MAX || c->bytes > CACHE_BYTES_MAX || c->descriptors > c->descriptors_max;
}

static void insert(struct cache *c, struct entry *e) {
	e->chain = c->bucket[e->hash % BUCKETS];
	c->bucket[e->hash % BUCKETS] = e;
	newest_link(c, e);
	c->files++;
	if (e->file.body) c->bytes += e->file.size;
	else c->descriptors++;
	e->references++;
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

int cache_open(const struct cache *c, const char *path, int flags) {
	flags |= O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY; /* a fifo or a device must not block or be taken over */
	if (c->symlinks_inside) return platform_open_beneath(c->root, path, flags);
	return openat(c->root, path, flags);
}

int cache_stat(const struct cache *c, const char *path, struct stat *st) {
	if (!c->symlinks_inside) return fstatat(c->root, path, st, 0);
	int fd = platform_open_beneath(c->root, path, PLATFORM_PATH | O_CLOEXEC);
	if (fd == -1) return -1;
	int result = fstat(fd, st);
	close(fd);
	return result;
}

static struct identity identity_of(const struct stat *st) {
	return (struct identity){.device = st->st_dev,
							 .inode = st->st_ino,
							 .mode = st->st_mode,
							 .size = st->st_size,
							 .modified = st->PLATFORM_MTIME,
							 .changed = st->PLATFORM_CTIME};
}

static bool same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

static bool same_identity(const struct identity *a, const struct identity *b) {
	return a->device == b->device && a->inode == b->inode && a->mode == b->mode && a->size == b->size &&
		   same_time(a->modified, b->modified) && same_time(a->changed, b->changed);
}

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
static int load(struct entry *e) {
	struct stat st;
	if (fstat(e->file.fd, &st) == -1) return errno;
	if (S_ISDIR(st.st_mode)) return EISDIR;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH)) return EACCES;
	for (int i = 0; i < READ_ATTEMPTS && st.st_size <= CACHE_BODY_MAX; i++) {
		struct identity before = identity_of(&st);
		char *body = read_body(e->file.fd, (size_t)st.st_size);
		if (!body && errno != EAGAIN) return errno;
		if (fstat(e->file.fd, &st) == -1) {
			free(body);
			return errno;
		}
		struct identity after = identity_of(&st);
		if (body && same_identity(&before, &after)) {
			e->file.body = body;
			close(e->file.fd);
			e->file.fd = -1;
			break;
		}
		free(body);
	}
	e->identity = identity_of(&st);
	e->file.size = (uint64_t)st.st_size;
	return 0;
}

/* A file in memory is known by its content. A larger one by everything that changes with it: two states of one file
 * differ at least in the time of their last change, which nobody can set; two files in their inode. */
static void make_etag(struct entry *e) {
	unsigned char hash[SHA256_DIGEST_LENGTH];
	const struct identity *id = &e->identity;
	const uint64_t known[] = {(uint64_t)id->device,
							  (uint64_t)id->inode,
							  (uint64_t)id->size,
							  (uint64_t)id->modified.tv_sec,
							  (uint64_t)id->modified.tv_nsec,
							  (uint64_t)id->changed.tv_sec,
							  (uint64_t)id->changed.tv_nsec};
	if (e->file.body) SHA256((const unsigned char *)e->file.body, e->file.size, hash);
	else SHA256((const unsigned char *)known, sizeof known, hash);
	char *out = e->etag;
	*out++ = '"';
	for (int i = 0; i < ETAG_BYTES; i++) {
		*out++ = fmt_tohex((char)(hash[i] >> 4));
		*out++ = fmt_tohex((char)(hash[i] & 15));
	}
	*out = '"';
	e->file.validators.etag = (struct slice){.at = e->etag, .length = ETAG_LENGTH};
}

static void make_fields(struct entry *e, time_t now) {
	struct file *f = &e->file;
	/* no date to come (RFC 9110, section 8.8.2.1), and none of a year that HTTP cannot write */
	time_t modified = e->identity.modified.tv_sec;
	f->validators.last_modified = modified > now ? now : modified < 0 ? 0 : modified;
	char date[DATE_LENGTH + 1];
	date_format(date, f->validators.last_modified);
	int n = snprintf(e->fields, sizeof e->fields, "Content-Length: %llu\r\n", (unsigned long long)f->size);
	f->type_at = (size_t)n;
	n += snprintf(e->fields + n, sizeof e->fields - (size_t)n, "Content-Type: %s\r\n" FILE_NOSNIFF, f->type);
	f->validators_at = (size_t)n;
	n += snprintf(e->fields + n, sizeof e->fields - (size_t)n,
				  "Accept-Ranges: bytes\r\nETag: %.*s\r\nLast-Modified: %s\r\n", ETAG_LENGTH, e->etag, date);
	f->fields = (struct slice){.at = e->fields, .length = (size_t)n};
	f->block = (struct slice){.at = e->block, .length = hpack_fields(f->fields, e->block)};
	f->validators.date = (struct slice){.at = e->fields + n - 2 - DATE_LENGTH, .length = DATE_LENGTH};
}

/* 0 or an errno. */
static int open_file(const struct cache *c, struct entry *e) {
	struct stat st;
	if (cache_stat(c, e->path, &st) == -1) return errno;
	if (S_ISDIR(st.st_mode)) return EISDIR;
	if (!S_ISREG(st.st_mode)) return EACCES; /* to open a fifo would wake its writer */
	e->file.fd = cache_open(c, e->path, 0);
	return e->file.fd == -1 ? errno : load(e);
}

/* A private key (PEM) that somebody has left where everybody may read it is no file to be served. */
static bool is_key(struct slice path, const struct file *f) {
	static const char mark[] = "PRIVATE KEY-----";
	const char *suffix = path.at + path.length - 4;
	if (path.length < 4 || (memcmp(suffix, ".pem", 4) != 0 && memcmp(suffix, ".key", 4) != 0)) return false;
	return f->body && memmem(f->body, f->size, mark, sizeof mark - 1);
}

static int open_entry(const struct cache *c, struct slice path, struct entry **result) {
	struct entry *e = calloc(1, sizeof *e + path.length + 1);
	if (!e) return ENOMEM;
	e->references = 1;
	e->file.fd = -1;
	memcpy(e->path, path.at, path.length);
	e->path_length = path.length;
	int error = open_file(c, e);
	if (!error && is_key(path, &e->file)) error = EACCES;
	if (error) {
		file_release(&e->file);
		return error;
	}
	time_t now = time(NULL);
	e->recent = e->identity.changed.tv_sec > now - RECENT_S;
	e->file.type = mime_type(path);
	make_etag(e);
	make_fields(e, now);
	*result = e;
	return 0;
}

/* Whether the entry may still be used. The path is looked at once a second. What is served from a descriptor may change
 * in place at any time: so that its bytes never go out under the entity-tag of others, it is looked at each time. */
static bool current(const struct cache *c, struct entry *e, int64_t now_ms) {
	struct stat st;
	bool due = now_ms - e->checked_ms >= CACHE_CHECK_MS;
	if (!due && e->file.body) return true;
	if ((due && e->recent) || (due ? cache_stat(c, e->path, &st) : fstat(e->file.fd, &st)) == -1) return false;
	if (due) e->checked_ms = now_ms;
	struct identity now = identity_of(&st);
	return same_identity(&now, &e->identity);
}

int cache_find(struct cache *c, struct slice path, int64_t now_ms, struct file **file) {
	uint64_t hash = hash_octets(c->seed, path);
	struct entry *e = c->bucket[hash % BUCKETS];
	while (e && !(e->hash == hash && e->path_length == path.length && memcmp(e->path, path.at, path.length) == 0))
		e = e->chain;
	if (e && !current(c, e, now_ms)) {
		drop(c, e);
		e = NULL;
	}
	if (e) {
		if (c->newest != e) {
			age_unlink(c, e);
			newest_link(c, e);
		}
		e->references++;
	} else {
		int error = open_entry(c, path, &e);
		if (error) return error;
		e->hash = hash;
		e->checked_ms = now_ms;
		insert(c, e);
	}
	*file = &e->file;
	return 0;
}
