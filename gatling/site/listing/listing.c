/* listing.c - see listing.h. Collects and sorts the entries, and keeps the text before and behind them. The text of the
 * entries is written once to measure it, and again each time that the listing is read. */
#include "gatling/site/listing/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gatling/codec/gzip.h"
#include "gatling/base/platform.h"
#include "gatling/files/key_file.h"
#include "gatling/files/site_file.h"
#include "gatling/http/coding.h"
#include "gatling/http/path.h"
#include "gatling/site/listing/listing_writer.h"
#include "gatling/site/listing/natural_order.h"

enum listing_format listing_format_of(struct slice query) {
	while (query.length) {
		slice_drop(&query, 1); /* '?', or '&' before each further part */
		struct slice part = slice_first(query, slice_until(query, '&'));
		if (slice_equal(part, SLICE("format=json"))) return LISTING_JSON;
		slice_drop(&query, part.length);
	}
	return LISTING_HTML;
}

struct listing {
	unsigned references;
	size_t *account; /* a sum that includes its memory; NULL: none */
	const struct listing_writer *writer;
	enum coding coding;
	struct listing_entry *entry;
	size_t count;
	char *names; /* in the order in which they were found, each with its NUL */
	size_t names_length;
	struct listing_summary summary;
	char *frame; /* the text before the entries, then the text behind them; a compressed listing is all head */
	size_t head_length, frame_length;
	uint64_t length;
};

struct listing_reader {
	struct listing *listing;
	size_t next;       /* part to be written: 0 is the head, then come the entries, then the foot */
	struct slice rest; /* of the part that is being written */
	char row[LISTING_ROW_MAX];
};

static void free_content(struct listing *l) {
	free(l->entry);
	free(l->names);
	free(l->frame);
}

void listing_release(void *listing) {
	struct listing *l = listing;
	if (--l->references) return;
	if (l->account) *l->account -= listing_memory(l);
	free_content(l);
	free(l);
}

uint64_t listing_length(const struct listing *l) { return l->length; }
enum coding listing_coding(const struct listing *l) { return l->coding; }

size_t listing_memory(const struct listing *l) {
	return sizeof *l + l->count * sizeof *l->entry + l->names_length + l->frame_length;
}

void listing_account(struct listing *l, size_t *account) {
	l->account = account;
	*account += listing_memory(l);
}

/* --- collecting --- */

static bool stopped(const atomic_bool *stop) { return stop && atomic_load_explicit(stop, memory_order_relaxed); }

/* Follows a link. Sets *elsewhere if its target is a URL, to which clients are redirected; otherwise fills in *st for
 * the target. Returns 0 or an errno. */
static int follow(const struct docroot *docroot, int directory, const char *path, const char *name, struct stat *st,
				  bool *elsewhere) {
	char target[PATH_MAX];
	ssize_t length = readlinkat(directory, name, target, sizeof target);
	if (length == -1) return errno;
	*elsewhere = memmem(target, (size_t)length, "://", 3);
	if (*elsewhere) return 0;
	/* the docroot decides how far a link may lead */
	int n = snprintf(target, sizeof target, "%s/%s", path, name);
	if (n < 0 || (size_t)n >= sizeof target) return ENAMETOOLONG;
	return docroot_stat(docroot, target, st) == -1 ? errno : 0;
}

/* Fills in the entry. Returns 0 if a file of that name would be served, otherwise an errno. */
static int inspect(const struct docroot *docroot, int directory, const char *path, const char *name,
				   struct listing_entry *entry, struct listing_summary *summary) {
	struct stat st;
	bool elsewhere = false;
	int error = fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ? errno : 0;
	if (!error && S_ISLNK(st.st_mode)) error = follow(docroot, directory, path, name, &st, &elsewhere);
	if (error) return error;
	entry->kind = elsewhere ? LISTING_ELSEWHERE : S_ISDIR(st.st_mode) ? LISTING_DIRECTORY : LISTING_FILE;
	entry->size = entry->kind == LISTING_FILE ? (uint64_t)st.st_size : 0;
	entry->modified = st.PLATFORM_MTIME.tv_sec;
	if (elsewhere) return 0;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) return ENOENT;
	if (st.st_mode & S_IROTH) return 0;
	summary->unreadable += !key_file_named(slice_of(name));
	return EACCES;
}

static bool is_full(const struct listing *l, size_t bytes, struct slice name) {
	return l->count >= LISTING_ENTRIES_MAX ||
		   (l->count + 1) * sizeof *l->entry + l->names_length + name.length + 1 > bytes;
}

/* Returns whether listings show files of that name. */
static bool is_shown(struct slice name, bool of_site) {
	if (name.at[0] == '.' || name.length > NAME_MAX || !path_allows(name)) return false;
	return !of_site || !site_file_is_rules(name);
}

/* Adds the contents of the directory to the totals of the listing, and names and entries to the streams. Returns 0 or
 * an errno. */
static int add_entries(struct listing *l, const struct docroot *docroot, DIR *directory,
					   const struct listing_request *request, const atomic_bool *stop, FILE *names, FILE *entries) {
	while (!l->summary.more) {
		struct listing_entry entry;
		errno = 0;
		struct dirent *d = readdir(directory);
		if (!d) return errno;
		struct slice name = slice_of(d->d_name);
		if (stopped(stop)) return ECANCELED;
		if (!is_shown(name, request->of_site)) continue;
		int error = inspect(docroot, dirfd(directory), request->path, d->d_name, &entry, &l->summary);
		if (docroot_error_is_temporary(error)) return error; /* no listing rather than half of one */
		if (error) continue;
		if (is_full(l, request->bytes, name)) {
			l->summary.more = true;
			continue;
		}
		if (fwrite(name.at, name.length + 1, 1, names) != 1 || fwrite(&entry, sizeof entry, 1, entries) != 1)
			return ENOMEM;
		l->names_length += name.length + 1;
		l->count++;
		l->summary.folders += entry.kind == LISTING_DIRECTORY;
		l->summary.files += entry.kind != LISTING_DIRECTORY;
		l->summary.bytes += entry.size;
	}
	return 0;
}

/* Fills in what the listing shows. Returns 0 or an errno. */
static int collect(struct listing *l, const struct docroot *docroot, const struct listing_request *request,
				   const atomic_bool *stop) {
	struct stat st;
	char *array = NULL;
	size_t size;
	int fd = docroot_open(docroot, request->path, O_DIRECTORY);
	DIR *directory = fd == -1 ? NULL : fdopendir(fd);
	int error = !directory || fstat(fd, &st) == -1 ? errno : st.st_mode & S_IROTH ? 0 : EACCES;
	FILE *names = error ? NULL : open_memstream(&l->names, &size);
	FILE *entries = error ? NULL : open_memstream(&array, &size);
	if (directory && names && entries) error = add_entries(l, docroot, directory, request, stop, names, entries);
	else if (!error) error = ENOMEM;
	if (names && fclose(names) != 0) error = ENOMEM;
	if (entries && fclose(entries) != 0) error = ENOMEM;
	if (directory) closedir(directory);
	else if (fd != -1) close(fd);
	l->entry = (struct listing_entry *)(void *)array;
	if (!error && !(l->names && array)) error = ENOMEM; /* glibc's fclose() does not report that */
	return error;
}

/* --- making --- */

static int by_kind_and_name(const void *a, const void *b) {
	const struct listing_entry *x = a, *y = b;
	bool x_first = x->kind == LISTING_DIRECTORY;
	if (x_first != (y->kind == LISTING_DIRECTORY)) return x_first ? -1 : 1;
	return natural_order_compare(x->name, y->name);
}

static void sort(struct listing *l) {
	if (!l->count) return;
	const char *name = l->names;
	for (size_t i = 0; i < l->count; i++, name += strlen(name) + 1) l->entry[i].name = name;
	qsort(l->entry, l->count, sizeof *l->entry, by_kind_and_name);
}

/* Makes the text before and behind the entries. Returns 0 or ENOMEM. */
static int make_frame(struct listing *l, struct slice title) {
	FILE *out = open_memstream(&l->frame, &l->frame_length);
	if (!out) return ENOMEM;
	l->writer->write_head(out, title, &l->summary);
	bool failed = fflush(out) != 0;
	l->head_length = l->frame_length;
	l->writer->write_foot(out, &l->summary);
	return fclose(out) != 0 || failed || !l->frame ? ENOMEM : 0;
}

/* Writes an entry to out (LISTING_ROW_MAX bytes). Returns its text. */
static struct slice write_row(const struct listing *l, size_t i, char *out) {
	struct text text = text_begin(out, LISTING_ROW_MAX);
	l->writer->add_row(&text, &l->entry[i], i ? &l->entry[i - 1] : NULL);
	return text_written(&text);
}

static int measure(struct listing *l, const atomic_bool *stop) {
	char text[LISTING_ROW_MAX];
	l->length = l->frame_length;
	for (size_t i = 0; i < l->count; i++) {
		if (stopped(stop)) return ECANCELED;
		l->length += write_row(l, i, text).length;
	}
	return 0;
}

/* --- reading --- */

struct listing_reader *listing_read(struct listing *l) {
	struct listing_reader *r = malloc(sizeof *r);
	if (!r) return NULL;
	l->references++;
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

/* Makes the next part. Returns false at the end. */
static bool write_next(struct listing_reader *r) {
	const struct listing *l = r->listing;
	if (r->next == 0) r->rest = (struct slice){.at = l->frame, .length = l->head_length};
	else if (r->next <= l->count) r->rest = write_row(l, r->next - 1, r->row);
	else if (r->next == l->count + 1)
		r->rest = (struct slice){.at = l->frame + l->head_length, .length = l->frame_length - l->head_length};
	else return false;
	r->next++;
	return r->rest.length > 0;
}

ssize_t listing_fill(void *reader, char *buffer, size_t size) {
	struct listing_reader *r = reader;
	size_t filled = 0;
	while (filled < size) {
		if (!r->rest.length && !write_next(r)) break;
		size_t n = r->rest.length < size - filled ? r->rest.length : size - filled;
		memcpy(buffer + filled, r->rest.at, n);
		slice_drop(&r->rest, n);
		filled += n;
	}
	if (filled) return (ssize_t)filled;
	errno = EIO;
	return -1;
}

/* --- the whole --- */

/* Compresses the listing, or leaves it as it is if that fails or makes it no smaller. Returns 0 or ECANCELED. */
static int compress(struct listing *l, const atomic_bool *stop) {
	struct listing_reader *reader = listing_read(l);
	char *body;
	uint64_t size;
	int error = reader ? gzip_compress_generated(listing_fill, reader, l->length, stop, &body, &size) : ENOMEM;
	if (reader) listing_reader_free(reader);
	if (error) return error == ECANCELED ? error : 0;
	free_content(l);
	*l = (struct listing){.references = 1,
						  .coding = CODING_GZIP,
						  .frame = body,
						  .head_length = size,
						  .frame_length = size,
						  .length = size};
	return 0;
}

int listing_make(const struct docroot *docroot, const struct listing_request *request, const atomic_bool *stop,
				 struct listing **listing) {
	struct listing *l = calloc(1, sizeof *l);
	if (!l) return ENOMEM;
	l->references = 1;
	l->writer = request->format == LISTING_JSON ? &listing_json : &listing_html;
	int error = collect(l, docroot, request, stop);
	if (!error) sort(l);
	if (!error) error = make_frame(l, request->title);
	if (!error) error = measure(l, stop);
	if (!error && request->coding == CODING_GZIP) error = compress(l, stop);
	if (error) listing_release(l);
	else *listing = l;
	return error;
}
