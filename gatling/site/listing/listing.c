/* listing.c - see listing.h. Collects and sorts; the text around the entries is made then, too, and kept, that of the
 * entries is only measured. */
#include "gatling/site/listing/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gatling/base/gzip.h"
#include "gatling/base/platform.h"
#include "gatling/base/unserved.h"
#include "gatling/http/path.h"
#include "gatling/site/listing/listing_form.h"
#include "gatling/site/listing/natural_order.h"

enum {
	ENTRIES_AT_FIRST = 32, /* room for so many; then for twice as many each time */
	CHUNK_MIN = 1024,      /* bytes of names that are kept together: each chunk is twice as large as the one before */
	CHUNK_MAX = 1024 * 1024
};

/* Names, each with its NUL. Chunks never move, so that entries point into them. */
struct chunk {
	struct chunk *next;
	size_t used, size;
	char bytes[];
};

struct listing {
	unsigned references;
	const struct form *form;
	enum coding coding;
	struct listing_entry *entry;
	size_t count, entries_size;
	struct chunk *names; /* the newest first */
	size_t names_memory, names_length;
	struct summary summary;
	char *head, *foot; /* a compressed one is all head */
	size_t head_length, foot_length;
	uint64_t length;
};

struct listing_reader {
	struct listing *listing;
	size_t next;       /* to be written: 0 is the head, then come the entries, then the foot */
	struct slice rest; /* of what is being written */
	char row[FORM_ROW_MAX];
};

void listing_retain(struct listing *l) { l->references++; }

static void free_content(struct listing *l) {
	while (l->names) {
		struct chunk *c = l->names;
		l->names = c->next;
		free(c);
	}
	free(l->entry);
	free(l->head);
	free(l->foot);
}

void listing_release(void *listing) {
	struct listing *l = listing;
	if (--l->references) return;
	free_content(l);
	free(l);
}

uint64_t listing_length(const struct listing *l) { return l->length; }
enum coding listing_coding(const struct listing *l) { return l->coding; }

size_t listing_memory(const struct listing *l) {
	return sizeof *l + l->entries_size * sizeof *l->entry + l->names_memory + l->head_length + l->foot_length;
}

/* --- collecting --- */

static bool stopped(const atomic_bool *stop) { return stop && atomic_load_explicit(stop, memory_order_relaxed); }

/* Whether the target of a link is the address of something on another server, to which clients are sent. */
static bool leads_elsewhere(int directory, const char *name) {
	char target[PATH_MAX];
	ssize_t length = readlinkat(directory, name, target, sizeof target);
	return length > 0 && memmem(target, (size_t)length, "://", 3);
}

/* Whether it would be served, and if so what it is. A link may lead where the docroot does not go: ask it. */
static bool inspect(const struct docroot *docroot, int directory, const char *path, const char *name,
					struct listing_entry *entry, struct summary *summary) {
	struct stat st;
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == -1) return false;
	bool elsewhere = S_ISLNK(st.st_mode) && leads_elsewhere(directory, name);
	if (S_ISLNK(st.st_mode) && !elsewhere) {
		char target[PATH_MAX];
		int length = snprintf(target, sizeof target, "%s/%s", path, name);
		if (length < 0 || (size_t)length >= sizeof target || docroot_stat(docroot, target, &st) == -1) return false;
	}
	entry->kind = elsewhere ? ENTRY_ELSEWHERE : S_ISDIR(st.st_mode) ? ENTRY_DIRECTORY : ENTRY_FILE;
	entry->size = entry->kind == ENTRY_FILE ? (uint64_t)st.st_size : 0;
	entry->modified = st.PLATFORM_MTIME.tv_sec;
	if (elsewhere) return true;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) return false;
	if (st.st_mode & S_IROTH) return true;
	summary->closed += !unserved_is_key((struct slice){.at = name, .length = strlen(name)});
	return false;
}

/* NULL: no memory. */
static const char *keep_name(struct listing *l, struct slice name) {
	struct chunk *c = l->names;
	if (!c || c->size - c->used <= name.length) {
		size_t size = !c ? CHUNK_MIN : c->size < CHUNK_MAX ? 2 * c->size : CHUNK_MAX;
		if (!(c = malloc(sizeof *c + size))) return NULL;
		*c = (struct chunk){.next = l->names, .size = size};
		l->names = c;
		l->names_memory += sizeof *c + size;
	}
	char *kept = c->bytes + c->used;
	memcpy(kept, name.at, name.length + 1);
	c->used += name.length + 1;
	l->names_length += name.length + 1;
	return kept;
}

static int add(struct listing *l, struct slice name, struct listing_entry entry) {
	if (l->count == l->entries_size) {
		size_t size = l->entries_size ? 2 * l->entries_size : ENTRIES_AT_FIRST;
		struct listing_entry *grown = realloc(l->entry, size * sizeof *grown);
		if (!grown) return ENOMEM;
		l->entry = grown;
		l->entries_size = size;
	}
	if (!(entry.name = keep_name(l, name))) return ENOMEM;
	l->entry[l->count++] = entry;
	if (entry.kind == ENTRY_DIRECTORY) l->summary.folders++;
	else l->summary.files++;
	l->summary.bytes += entry.size;
	return 0;
}

static bool is_full(const struct listing *l, size_t bytes, struct slice name) {
	return l->count >= LISTING_ENTRIES_MAX ||
		   (l->count + 1) * sizeof *l->entry + l->names_length + name.length + 1 > bytes;
}

/* Whether somebody may know of that name. */
static bool is_shown(struct slice name, bool at_root) {
	if (name.at[0] == '.' || name.length > NAME_MAX || !path_allows(name)) return false;
	return !at_root || !(slice_equal(name, SLICE("_headers")) || slice_equal(name, SLICE("_redirects")));
}

static int collect(const struct docroot *docroot, DIR *directory, const struct listing_request *wanted,
				   const atomic_bool *stop, struct listing *l) {
	bool at_root = wanted->title.length == 0;
	int error = 0;
	while (!error && !l->summary.more) {
		struct listing_entry entry;
		errno = 0;
		struct dirent *d = readdir(directory);
		if (!d) return errno;
		struct slice name = {.at = d->d_name, .length = strlen(d->d_name)};
		if (stopped(stop)) error = ECANCELED;
		else if (!is_shown(name, at_root) ||
				 !inspect(docroot, dirfd(directory), wanted->path, d->d_name, &entry, &l->summary))
			continue;
		else if (is_full(l, wanted->bytes, name)) l->summary.more = true;
		else error = add(l, name, entry);
	}
	return error;
}

/* --- making --- */

static int by_kind_and_name(const void *a, const void *b) {
	const struct listing_entry *x = a, *y = b;
	bool x_first = x->kind == ENTRY_DIRECTORY, y_first = y->kind == ENTRY_DIRECTORY;
	if (x_first != y_first) return x_first ? -1 : 1;
	return natural_order_compare(x->name, y->name);
}

static void sort(struct listing *l) {
	if (!l->count) return;
	qsort(l->entry, l->count, sizeof *l->entry, by_kind_and_name);
	struct listing_entry *exact = realloc(l->entry, l->count * sizeof *exact);
	if (!exact) return; /* then it stays where it is */
	l->entry = exact;
	l->entries_size = l->count;
}

/* The text before the entries, and behind them. */
static int frame(struct listing *l, struct slice title) {
	FILE *head = open_memstream(&l->head, &l->head_length);
	FILE *foot = open_memstream(&l->foot, &l->foot_length);
	if (head) l->form->write_head(head, title, &l->summary);
	if (foot) l->form->write_foot(foot, &l->summary);
	bool head_failed = !head || fclose(head) != 0;
	bool foot_failed = !foot || fclose(foot) != 0;
	return head_failed || foot_failed ? ENOMEM : 0;
}

static size_t row(const struct listing *l, size_t i, char *out) {
	return l->form->row(&l->entry[i], i ? &l->entry[i - 1] : NULL, out);
}

static int measure(struct listing *l, const atomic_bool *stop) {
	char text[FORM_ROW_MAX];
	l->length = l->head_length + l->foot_length;
	for (size_t i = 0; i < l->count; i++) {
		if (stopped(stop)) return ECANCELED;
		l->length += row(l, i, text);
	}
	return 0;
}

/* --- reading --- */

struct listing_reader *listing_read(struct listing *l) {
	struct listing_reader *r = malloc(sizeof *r);
	if (!r) return NULL;
	listing_retain(l);
	r->listing = l;
	r->next = 0;
	r->rest = (struct slice){0};
	return r;
}

void listing_reader_free(void *reader) {
	struct listing_reader *r = reader;
	listing_release(r->listing);
	free(r);
}

/* false at the end. */
static bool write_next(struct listing_reader *r) {
	const struct listing *l = r->listing;
	if (r->next == 0) r->rest = (struct slice){.at = l->head, .length = l->head_length};
	else if (r->next <= l->count) r->rest = (struct slice){.at = r->row, .length = row(l, r->next - 1, r->row)};
	else if (r->next == l->count + 1 && l->foot_length)
		r->rest = (struct slice){.at = l->foot, .length = l->foot_length};
	else return false;
	r->next++;
	return true;
}

ssize_t listing_fill(void *reader, char *buffer, size_t size) {
	struct listing_reader *r = reader;
	size_t filled = 0;
	while (filled < size) {
		if (!r->rest.length && !write_next(r)) break;
		size_t n = r->rest.length < size - filled ? r->rest.length : size - filled;
		memcpy(buffer + filled, r->rest.at, n);
		r->rest.at += n;
		r->rest.length -= n;
		filled += n;
	}
	if (filled) return (ssize_t)filled;
	errno = EIO;
	return -1;
}

/* --- the whole --- */

/* NULL with errno. */
static DIR *open_directory(const struct docroot *docroot, const char *path) {
	struct stat st;
	int fd = docroot_open(docroot, path, O_DIRECTORY);
	if (fd == -1) return NULL;
	int error = fstat(fd, &st) == -1 ? errno : st.st_mode & S_IROTH ? 0 : EACCES;
	DIR *directory = error ? NULL : fdopendir(fd);
	if (directory) return directory;
	if (!error) error = errno;
	close(fd);
	errno = error;
	return NULL;
}

/* Compresses what has been made. If that fails or is of no use, it stays as it is. 0 or ECANCELED. */
static int pack(struct listing *l, const atomic_bool *stop) {
	struct listing_reader *reader = listing_read(l);
	char *body;
	uint64_t size;
	int error = reader ? gzip_compress_generated(listing_fill, reader, l->length, stop, &body, &size) : ENOMEM;
	if (reader) listing_reader_free(reader);
	if (error) return error == ECANCELED ? error : 0;
	free_content(l);
	*l = (struct listing){.references = 1, .coding = CODING_GZIP, .head = body, .head_length = size, .length = size};
	return 0;
}

int listing_make(const struct docroot *docroot, const struct listing_request *wanted, const atomic_bool *stop,
				 struct listing **listing) {
	DIR *directory = open_directory(docroot, wanted->path);
	if (!directory) return errno;
	struct listing *l = calloc(1, sizeof *l);
	if (!l) {
		closedir(directory);
		return ENOMEM;
	}
	l->references = 1;
	l->form = wanted->format == LISTING_JSON ? &form_json : &form_html;
	int error = collect(docroot, directory, wanted, stop, l);
	closedir(directory);
	if (!error) {
		sort(l);
		error = frame(l, wanted->title);
	}
	if (!error) error = measure(l, stop);
	if (!error && wanted->coding == CODING_GZIP) error = pack(l, stop);
	if (error) listing_release(l);
	else *listing = l;
	return error;
}
