/* names.c - see names.h. Only hashes of the names are kept. A name with the hash of another one is taken to be there,
 * and then the file system is asked. */
#include "gatling/files/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "gatling/base/file_version.h"
#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "gatling/http/coding.h"

enum { BUCKETS = 16 * 1024, CHAIN_MAX = 32 };

struct name {
	uint32_t hash, inode; /* inode: the last bits of the inode number of a regular file; of others: enum kind */
};

enum kind { OTHER, DIRECTORY };

struct directory {
	uint64_t hash;               /* of the path */
	int64_t looked_ns;           /* the turn in which it was last examined, */
	bool known;                  /* and whether its names are known in this turn */
	struct file_version version; /* its version when it was last examined */
	int64_t read_ns;             /* when it was last read */
	unsigned questions;          /* turns in which it was examined since it was read */
	unsigned expected;           /* how many names it may have, if it is read again */
	bool numbers;                /* the inode numbers that readdir(3) returns are those of the files */
	unsigned count;
	struct name *name; /* sorted by hash; NULL: the names are not known */
	LIST_ENTRY(directory) chain;
	TAILQ_ENTRY(directory) age;
	struct slice path;
	char text[]; /* the path, "/." and a NUL */
};

struct names {
	const struct tree *tree;
	bool off;                    /* the file system of the root may find more names than it lists */
	const int64_t *now_ns;       /* of this turn */
	size_t bytes;                /* of all directories, */
	size_t bytes_max;            /* and their limit */
	TAILQ_HEAD(, directory) all; /* the least recently used first */
	LIST_HEAD(, directory) bucket[BUCKETS];
};

struct names *names_new(const struct tree *tree, const int64_t *now_ns, unsigned workers) {
	struct names *n = calloc(1, sizeof *n);
	if (!n) return NULL;
	n->tree = tree;
	n->now_ns = now_ns;
	n->bytes_max = NAMES_BYTES / workers > NAMES_BYTES_LEAST ? NAMES_BYTES / workers : NAMES_BYTES_LEAST;
	n->off = !platform_lists_all_names(tree->docroot.root);
	TAILQ_INIT(&n->all);
	return n;
}

/* Returns the bytes that a directory takes. */
static size_t size_of(const struct directory *d) { return sizeof *d + strlen(d->text) + d->count * sizeof *d->name; }

static void forget_names(struct names *n, struct directory *d) {
	n->bytes -= d->count * sizeof *d->name;
	d->count = 0;
	free(d->name);
	d->name = NULL;
}

static void drop(struct names *n, struct directory *d) {
	n->bytes -= size_of(d);
	LIST_REMOVE(d, chain);
	TAILQ_REMOVE(&n->all, d, age);
	free(d->name);
	free(d);
}

void names_free(struct names *n) {
	if (!n) return;
	while (!TAILQ_EMPTY(&n->all)) drop(n, TAILQ_FIRST(&n->all));
	free(n);
}

/* --- the names of a directory --- */

/* The entries of a name: for itself, and for a precompressed copy, which has a suffix behind it. */
enum entry { ENTRY_ITSELF = 1, ENTRY_CODED = 2 };

/* The last bit of a hash in struct name is set for a regular file. */
enum { REGULAR = 1 };

static uint32_t hash_of(enum entry entry, struct slice name) {
	return (uint32_t)(slice_hash(entry, name) >> 32) & ~(uint32_t)REGULAR;
}

/* Returns the name with a hash, or NULL. */
static const struct name *find_hash(const struct directory *d, uint32_t hash) {
	unsigned from = 0, to = d->count;
	while (from < to) {
		unsigned middle = from + (to - from) / 2;
		if ((d->name[middle].hash | REGULAR) < hash) from = middle + 1;
		else to = middle;
	}
	return from < d->count && (d->name[from].hash & ~(uint32_t)REGULAR) == hash ? &d->name[from] : NULL;
}

/* The names of a directory while it is read. */
struct reading {
	struct name *name;
	unsigned count, room;
	unsigned names;
};

/* inode: of struct name. */
static bool add_entry(struct reading *r, enum entry entry, struct slice name, bool regular, uint32_t inode) {
	if (r->count == r->room) {
		unsigned room = r->room ? 2 * r->room : 64;
		struct name *larger = realloc(r->name, room * sizeof *larger);
		if (!larger) return false;
		r->name = larger;
		r->room = room;
	}
	r->name[r->count++] = (struct name){.hash = hash_of(entry, name) | regular, .inode = inode};
	return true;
}

/* Adds the entries of a name. Returns false if there are too many names, or no memory. */
static bool add(struct reading *r, struct slice name, const struct dirent *found) {
	if (r->names++ == NAMES_MAX) return false;
	const struct slice original = coding_original(name);
	if (original.length < name.length && !add_entry(r, ENTRY_CODED, original, false, OTHER)) return false;
	const bool regular = found->d_type == DT_REG;
	const uint32_t kind = found->d_type == DT_DIR ? DIRECTORY : OTHER;
	return add_entry(r, ENTRY_ITSELF, name, regular, regular ? (uint32_t)found->d_ino : kind);
}

static int compare(const void *a, const void *b) {
	const struct name *one = a, *two = b;
	return (one->hash > two->hash) - (one->hash < two->hash);
}

/* Moves the names to the directory, sorted and without duplicates. Two names with the same hash cannot be told apart,
 * so neither counts as a regular file or a directory. */
static void keep_names(struct names *n, struct directory *d, struct reading *r) {
	unsigned kept = 0;
	if (r->count) qsort(r->name, r->count, sizeof *r->name, compare);
	for (unsigned i = 0; i < r->count; i++)
		if (kept && (r->name[kept - 1].hash | REGULAR) == (r->name[i].hash | REGULAR))
			r->name[kept - 1] = (struct name){.hash = r->name[i].hash & ~(uint32_t)REGULAR, .inode = OTHER};
		else r->name[kept++] = r->name[i];
	struct name *smaller = kept ? realloc(r->name, kept * sizeof *r->name) : NULL;
	d->name = smaller ? smaller : r->name;
	d->count = kept;
	d->numbers = true;
	n->bytes += kept * sizeof *r->name;
	r->name = NULL;
}

/* Returns whether c is an ASCII letter. */
static bool is_letter(char c) { return (c | ' ') >= 'a' && (c | ' ') <= 'z'; }

static bool has(const struct directory *d, enum entry entry, struct slice name) {
	return find_hash(d, hash_of(entry, name));
}

/* Returns whether the file system also finds a name in another case, so that it finds more names than it lists. */
static bool ignores_case(const struct directory *d, int fd, const char *name) {
	char other[NAME_MAX + 1];
	struct stat st;
	size_t length = strlen(name), i = 0;
	while (i < length && !is_letter(name[i])) i++;
	if (i == length || length > NAME_MAX) return false;
	memcpy(other, name, length + 1);
	other[i] ^= ' ';
	return !has(d, ENTRY_ITSELF, slice_of(other)) && fstatat(fd, other, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Reads the names. Returns false if there are too many, if the file system finds others, too, or if reading fails. */
static bool read_names(struct names *n, struct directory *d, int fd, DIR *stream) {
	char letters[NAME_MAX + 1] = ""; /* a name that begins with one */
	struct reading r = {0};
	bool all = true;
	for (const struct dirent *entry; errno = 0, all && (entry = readdir(stream));) {
		struct slice name = slice_of(entry->d_name);
		all = add(&r, name, entry);
		if (!*letters && is_letter(name.at[0]) && name.length < sizeof letters)
			memcpy(letters, name.at, name.length + 1);
	}
	if (all && !errno) keep_names(n, d, &r);
	free(r.name);
	return d->name && !ignores_case(d, fd, letters);
}

/* Reads a directory, but drops the names if it has changed meanwhile. A failure is not tried again before it would pay
 * for NAMES_MAX names. */
static void read_directory(struct names *n, struct directory *d) {
	struct stat st;
	forget_names(n, d);
	int fd = tree_open(n->tree, d->text, O_DIRECTORY, false);
	DIR *stream = fd != -1 && platform_lists_all_names(fd) ? fdopendir(fd) : NULL;
	bool read = stream && read_names(n, d, fd, stream) && fstat(fd, &st) == 0;
	if (read) {
		const struct file_version now = file_version_of(&st);
		read = file_version_same(&now, &d->version);
	}
	if (stream) closedir(stream);
	else if (fd != -1) close(fd);
	d->known = read;
	d->read_ns = *n->now_ns;
	d->questions = 0;
	d->expected = read ? d->count : NAMES_MAX;
	if (!read) forget_names(n, d);
}

/* --- directories --- */

static struct directory *find_directory(const struct names *n, struct slice path, uint64_t hash) {
	struct directory *d = LIST_FIRST(&n->bucket[hash % BUCKETS]);
	while (d && !(d->hash == hash && slice_equal(d->path, path))) d = LIST_NEXT(d, chain);
	return d;
}

/* Drops the oldest directory of a chain of CHAIN_MAX. A chain is that long only if somebody has chosen the names. */
static void shorten_chain(struct names *n, uint64_t hash) {
	struct directory *d = LIST_FIRST(&n->bucket[hash % BUCKETS]);
	for (int i = 1; d && i < CHAIN_MAX; i++) d = LIST_NEXT(d, chain);
	if (d) drop(n, d);
}

/* Adds a directory. text: that of struct directory. Returns NULL without memory. */
static struct directory *insert(struct names *n, struct slice path, const char *text, uint64_t hash,
								const struct stat *st) {
	shorten_chain(n, hash);
	const size_t size = strlen(text) + 1;
	struct directory *d = calloc(1, sizeof *d + size);
	if (!d) return NULL;
	d->hash = hash;
	d->path = (struct slice){.at = d->text, .length = path.length};
	memcpy(d->text, text, size);
	d->expected = st->st_size / NAMES_OCTETS < NAMES_MAX ? (unsigned)(st->st_size / NAMES_OCTETS) : NAMES_MAX;
	LIST_INSERT_HEAD(&n->bucket[hash % BUCKETS], d, chain);
	TAILQ_INSERT_TAIL(&n->all, d, age);
	n->bytes += size_of(d);
	return d;
}

/* Examines a directory for the first time in a turn, and reads it if that pays. Adds it if *found is NULL. Returns 0 or
 * an errno. */
static int look(struct names *n, struct directory **found, struct slice path, uint64_t hash) {
	char text[NAMES_PATH_MAX];
	struct directory *d = *found;
	struct stat st;
	memcpy(text_copy(text, path), path.length ? "/." : ".", path.length ? sizeof "/." : sizeof ".");
	if (tree_stat_here(n->tree, text, &st) == -1) return errno; /* also EACCES, if the directory may not be entered */
	if (!d && !(*found = d = insert(n, path, text, hash, &st))) return ENOMEM;
	const struct file_version now = file_version_of(&st);
	d->looked_ns = *n->now_ns;
	if (!file_version_same(&now, &d->version)) forget_names(n, d);
	d->version = now;
	d->known = d->name && *n->now_ns - d->read_ns < NAMES_VALID_MS * INT64_C(1000000);
	d->questions++;
	if (!d->known && d->questions * NAMES_A_QUESTION >= d->expected && !file_version_unsettled_ms(&now))
		read_directory(n, d);
	for (struct directory *old = TAILQ_FIRST(&n->all), *newer; old != d && n->bytes > n->bytes_max; old = newer) {
		newer = TAILQ_NEXT(old, age);
		drop(n, old);
	}
	return 0;
}

/* Returns whether a name is ASCII: file systems may ignore the case or the normal form of other letters. */
static bool is_plain(struct slice name) {
	char all = 0;
	for (size_t i = 0; i < name.length; i++) all |= name.at[i];
	return !(all & 0x80);
}

/* A path in two parts. */
struct path_place {
	struct slice directory, name; /* everything before the last segment, and that segment */
	uint64_t hash;                /* of the directory */
};

static struct path_place place_of(struct slice path) {
	if (path.length && path.at[path.length - 1] == '/') path.length--;
	size_t start = path.length;
	while (start && path.at[start - 1] != '/') start--;
	const struct slice directory = slice_first(path, start ? start - 1 : 0);
	return (struct path_place){
		.directory = directory, .name = slice_rest(path, start), .hash = slice_hash(1, directory)};
}

/* Returns whether nothing can be known about a path. */
static bool is_beyond(const struct names *n, const struct path_place *p) {
	return !n || n->off || !p->name.length || p->directory.length + p->name.length > NAMES_PATH_MAX - sizeof "/." ||
		   !is_plain(p->name) || tree_is_remote(n->tree, p->directory);
}

/* Does what names_lack() does, for a set of enum entry. */
static bool lack(struct names *n, struct slice path, unsigned entries);

/* Makes a directory the most recently used one. */
static void use(struct names *n, struct directory *d) {
	if (!TAILQ_NEXT(d, age)) return;
	TAILQ_REMOVE(&n->all, d, age);
	TAILQ_INSERT_TAIL(&n->all, d, age);
}

/* Returns whether a directory was examined in the last NAMES_LATELY_MS, and its names and inode numbers are known. */
static bool known_lately(struct names *n, struct directory *d) {
	if (!d || !d->known || !d->numbers || *n->now_ns - d->looked_ns >= NAMES_LATELY_MS * INT64_C(1000000)) return false;
	use(n, d);
	return true;
}

/* Examines a directory, unless that has been done in this turn. d: the result of find_directory(). Returns the
 * directory, or NULL if its names are not known. *absent: it does not exist. */
static const struct directory *look_once(struct names *n, const struct path_place *p, struct directory *d,
										 bool *absent) {
	*absent = !d && p->directory.length && lack(n, p->directory, ENTRY_ITSELF); /* otherwise look() finds out */
	if (*absent) return NULL;
	if (d) use(n, d);
	int error = !d || d->looked_ns != *n->now_ns ? look(n, &d, p->directory, p->hash) : 0;
	*absent = error == ENOENT || error == ENOTDIR;
	if (error && d) drop(n, d);
	return !error && d && d->known ? d : NULL;
}

/* Returns whether a directory has none of these entries of a name. entries: a set of enum entry. */
static bool has_none(const struct directory *d, struct slice name, unsigned entries) {
	return !(entries & ENTRY_ITSELF && has(d, ENTRY_ITSELF, name)) &&
		   !(entries & ENTRY_CODED && has(d, ENTRY_CODED, name));
}

static bool lack(struct names *n, struct slice path, unsigned entries) {
	const struct path_place p = place_of(path);
	bool absent;
	if (is_beyond(n, &p)) return false;
	const struct directory *d = look_once(n, &p, find_directory(n, p.directory, p.hash), &absent);
	return d ? has_none(d, p.name, entries) : absent;
}

bool names_lack(struct names *n, struct slice path) { return lack(n, path, ENTRY_ITSELF); }
bool names_lack_coded(struct names *n, struct slice path) { return lack(n, path, ENTRY_CODED); }

size_t names_reach(struct names *n, struct slice path) {
	size_t reach = path.length;
	unsigned depth = 0;
	while (reach && path.at[reach - 1] != '/') reach--;
	for (size_t i = 0; i < reach; i++) depth += path.at[i] == '/';
	if (depth <= NAMES_SHALLOW) return reach;
	for (size_t i = 0, start = 0; i < reach; i++) {
		if (path.at[i] != '/') continue;
		if (names_lack(n, slice_first(path, i))) return start;
		start = i + 1;
	}
	return reach;
}

bool names_lacked_lately(struct names *n, struct slice path) {
	const struct path_place p = place_of(path);
	if (is_beyond(n, &p)) return false;
	struct directory *d = find_directory(n, p.directory, p.hash);
	return known_lately(n, d) ? has_none(d, p.name, ENTRY_ITSELF) : lack(n, path, ENTRY_ITSELF);
}

/* Returns the result of names_tell() for a name in a directory whose names are known. */
static struct names_told tell(const struct directory *d, struct slice name) {
	const struct name *itself = find_hash(d, hash_of(ENTRY_ITSELF, name));
	struct names_told told = {.what = has(d, ENTRY_CODED, name) ? NAMES_CODED : 0};
	if (itself) told.what |= NAMES_ITSELF;
	if (itself && !(itself->hash & REGULAR) && itself->inode == DIRECTORY) told.what |= NAMES_DIRECTORY;
	if (!itself || !(itself->hash & REGULAR)) return told;
	return (struct names_told){told.what | NAMES_REGULAR, itself->inode, d->version.device};
}

struct names_told names_tell(struct names *n, struct slice path) {
	const struct path_place p = place_of(path);
	bool absent = false;
	const struct directory *d = NULL;
	struct directory *known = n ? find_directory(n, p.directory, p.hash) : NULL;
	if (known && !is_beyond(n, &p)) {
		struct names_told told = {0};
		if (known_lately(n, known)) told = tell(known, p.name);
		if (told.what & NAMES_REGULAR) {
			if (known->looked_ns != *n->now_ns) told.what |= NAMES_LATELY;
			return told;
		}
		d = look_once(n, &p, known, &absent);
	} else if (n && !known && p.directory.length) {
		absent = !(names_tell(n, p.directory).what & (NAMES_ITSELF | NAMES_UNTOLD));
	}
	return d ? tell(d, p.name) : (struct names_told){.what = absent ? 0 : NAMES_UNTOLD};
}

bool names_told_of(struct names *n, struct slice path, const struct names_told *told, const struct file_version *file) {
	if (told->inode == (uint32_t)file->inode && told->device == file->device) return true;
	const struct path_place p = place_of(path);
	struct directory *d = find_directory(n, p.directory, p.hash);
	bool absent;
	const int64_t read_ns = d ? d->read_ns : 0;
	/* if the directory has not changed, the inode numbers that it lists are not those of its files */
	if (d && look_once(n, &p, d, &absent) && d->read_ns == read_ns) d->numbers = false;
	return false;
}

bool names_entered(struct names *n, struct slice directory) {
	const struct directory *d = n ? find_directory(n, directory, slice_hash(1, directory)) : NULL;
	return d && d->looked_ns == *n->now_ns;
}

int names_stat(struct names *n, const struct tree *tree, const char *path, struct stat *st) {
	if (!names_lack(n, slice_of(path))) return tree_stat(tree, path, st);
	errno = ENOENT;
	return -1;
}
