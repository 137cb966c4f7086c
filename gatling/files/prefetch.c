/* prefetch.c - see prefetch.h. The bytes that are read are thrown away, but stay in the caches of the kernel. */
#include "gatling/files/prefetch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "gatling/files/key_file.h"
#include "gatling/files/site_file.h"
#include "gatling/http/coding.h"
#include "gatling/media/alternate.h"
#include "io/at_once.h"

enum { BUCKETS = 64, NAME_ROOM = 32 /* for ".htaccess_global", or the suffix of a coding or an alternate */ };

struct prefetch {
	struct job job;
	struct prefetcher *prefetcher;
	bool in_mount; /* the path may lead to another machine: then nothing is read */
	LIST_ENTRY(prefetch) chain;
	char path[];
};

struct prefetcher {
	const struct tree *tree;
	struct jobs *jobs;
	unsigned count;
	LIST_HEAD(, prefetch) bucket[BUCKETS];
};

struct prefetcher *prefetcher_new(const struct tree *tree, struct jobs *jobs) {
	struct prefetcher *f = calloc(1, sizeof *f);
	if (!f) return NULL;
	f->tree = tree;
	f->jobs = jobs;
	return f;
}

void prefetcher_free(struct prefetcher *f) { free(f); }

/* --- in the thread --- */

static int open_path(const struct prefetch *f, const char *path, int flags) {
	const struct docroot *docroot = &f->prefetcher->tree->docroot;
	return f->in_mount ? docroot_open_in_mount(docroot, path, flags, false) : docroot_open(docroot, path, flags);
}

static int look_at(const struct prefetch *f, const char *path, struct stat *st) {
	if (f->in_mount) return docroot_stat_open(open_path(f, path, PLATFORM_PATH), st);
	return docroot_stat(&f->prefetcher->tree->docroot, path, st);
}

/* Reads the beginning of a file, as far as it is read before it is sent. A fifo is not opened, since that would wake
 * its writer. Returns 0, or the errno of stat(2). */
static int read_file(const struct prefetch *f, const char *path) {
	struct stat st;
	if (look_at(f, path, &st) == -1) return errno;
	int fd = S_ISREG(st.st_mode) ? open_path(f, path, 0) : -1;
	if (fd == -1) return 0;
	io_no_read_ahead(fd);
	const off_t most = key_file_named(slice_of(path)) ? KEY_FILE_MAX : PREFETCH_BYTES;
	free(file_read(fd, (size_t)(st.st_size < most ? st.st_size : most)));
	close(fd);
	return 0;
}

/* Reads the .htaccess of each directory on the path, with its usual file of users, and the rules of a site, which is
 * the root or a directory in it. */
static void read_rules(const struct prefetch *f, const char *path, size_t length) {
	static const char *const everywhere[] = {".htaccess", ".htpasswd"};
	enum { EVERYWHERE = sizeof everywhere / sizeof *everywhere };
	char name[PREFETCH_PATH_MAX + NAME_ROOM];
	unsigned depth = 0;
	for (size_t i = 0; i < length; i++) {
		if (i && path[i - 1] != '/') continue;
		memcpy(name, path, i);
		const size_t count = depth++ < 2 ? EVERYWHERE + SITE_FILES : EVERYWHERE;
		for (size_t k = 0; k < count; k++) {
			*text_copy_string(name + i, k < EVERYWHERE ? everywhere[k] : site_file_name[k - EVERYWHERE]) = '\0';
			(void)read_file(f, name);
		}
	}
}

/* Reads the file at a path, its precompressed copies, and the rules for it. Looks at its alternates. */
static void read_path(const struct prefetch *f) {
	const struct slice path = slice_of(f->path);
	char name[PREFETCH_PATH_MAX + NAME_ROOM];
	char *end = text_copy(name, path);
	*end = '\0';
	int error = read_file(f, name);
	for (int i = CODING_IDENTITY + 1; i < CODINGS && (!error || error == ENOENT); i++) {
		*text_copy(end, coding_suffix[i]) = '\0';
		(void)read_file(f, name);
	}
	struct slice stem;
	struct stat st;
	const unsigned alternates = alternates_of(path, &stem);
	for (int i = 0; i < ALTERNATES; i++) {
		if (!(alternates >> i & 1)) continue;
		*TEXT_JOIN(name, stem, alternate_suffix[i]) = '\0';
		(void)look_at(f, name, &st);
	}
	read_rules(f, path.at, path.length);
}

static void run_prefetch(struct job *job, const atomic_bool *stop) {
	const struct prefetch *f = (struct prefetch *)job;
	if (!atomic_load(stop)) read_path(f);
}

/* --- on the loop --- */

static void finish(struct job *job) {
	struct prefetch *f = (struct prefetch *)job;
	LIST_REMOVE(f, chain);
	f->prefetcher->count--;
	free(f);
}

static struct prefetch *find_prefetch(const struct prefetcher *prefetcher, uint64_t hash, struct slice path) {
	struct prefetch *f = LIST_FIRST(&prefetcher->bucket[hash / 2 % BUCKETS]);
	while (f && !slice_equal(slice_of(f->path), path)) f = LIST_NEXT(f, chain);
	return f;
}

bool prefetch_waited(const uint64_t *prefetched, struct slice path) {
	const uint64_t hash = prefetch_hash(path);
	for (unsigned i = 0; prefetched && i < WAITS_MAX; i++)
		if (prefetched[i] == hash) return true;
	return false;
}

struct job *prefetch(struct prefetcher *prefetcher, struct slice path) {
	const uint64_t hash = prefetch_hash(path);
	struct prefetch *f = find_prefetch(prefetcher, hash, path);
	if (f) return &f->job;
	if (prefetcher->count == PREFETCHES_MAX || path.length >= PREFETCH_PATH_MAX) return NULL;
	if (!(f = malloc(sizeof *f + path.length + 1))) return NULL;
	*f = (struct prefetch){.job = {.run = run_prefetch, .finish = finish, .prefetches = hash},
						   .prefetcher = prefetcher,
						   .in_mount = prefetcher->tree->remote};
	*text_copy(f->path, path) = '\0';
	if (!jobs_add(prefetcher->jobs, &f->job)) {
		free(f);
		return NULL;
	}
	LIST_INSERT_HEAD(&prefetcher->bucket[hash / 2 % BUCKETS], f, chain);
	prefetcher->count++;
	return &f->job;
}
