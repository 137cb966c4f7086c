/* unserved.c - see unserved.h. */
#include "gatling/files/unserved.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gatling/base/notice.h"
#include "gatling/base/text.h"
#include "gatling/http/coding.h"

/* --- keys --- */

/* Takes a suffix, in either case, off the end of a name. Returns whether it had one. */
static bool take_suffix(struct slice *name, const struct slice *suffix, size_t count) {
	for (size_t i = 0; i < count; i++) {
		if (!suffix[i].length || !slice_ends_nocase(*name, suffix[i])) continue;
		name->length -= suffix[i].length;
		return true;
	}
	return false;
}

/* Takes the suffixes of copies off the end of a name. Returns whether one is that of a compressed copy. */
static bool take_copies(struct slice *name) {
	static const struct slice old[] = {SLICE("~"), SLICE(".bak"), SLICE(".old"), SLICE(".orig"), SLICE(".save")};
	bool compressed = false;
	while (true) {
		if (take_suffix(name, coding_suffix, CODINGS)) compressed = true;
		else if (!take_suffix(name, old, sizeof old / sizeof *old)) return compressed;
	}
}

bool unserved_is_key(struct slice path) {
	if (!path.length || !strchr("degkmrtyz~", text_lower(path.at[path.length - 1]))) return false; /* most names */
	(void)take_copies(&path);
	return slice_ends_nocase(path, SLICE(".pem")) || slice_ends_nocase(path, SLICE(".key"));
}

bool unserved_is_opaque(struct slice path, uint64_t size) {
	return unserved_is_key(path) && (size > UNSERVED_KEY_FILE_MAX || take_copies(&path));
}

bool unserved_has_key(struct slice text) {
	static const char mark[] = "PRIVATE KEY";
	return memmem(text.at, text.length, mark, sizeof mark - 1);
}

/* The files of TLS, sorted. There are few, and workers look for one only when they load a file. */
static pthread_mutex_t tls_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *tls_inode; /* guarded by the mutex */
static size_t tls_inodes;
static atomic_bool any_tls_file;

static int compare(const void *a, const void *b) {
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

void unserved_set_tls_files(uint64_t *inode, size_t count) {
	if (count) qsort(inode, count, sizeof *inode, compare);
	pthread_mutex_lock(&tls_mutex);
	uint64_t *last = tls_inode;
	tls_inode = inode;
	tls_inodes = count;
	atomic_store(&any_tls_file, count > 0);
	pthread_mutex_unlock(&tls_mutex);
	free(last);
}

bool unserved_is_tls_file(const struct file_version *version) {
	if (!atomic_load(&any_tls_file)) return false;
	const uint64_t inode = file_version_hash_inode(version->device, version->inode);
	pthread_mutex_lock(&tls_mutex);
	const bool is = tls_inodes && bsearch(&inode, tls_inode, tls_inodes, sizeof inode, compare);
	pthread_mutex_unlock(&tls_mutex);
	return is;
}

/* --- reports --- */

/* Reports the directory on the path that the server may not enter: the last one that stat(2) can see. Returns whether
 * the report is new. */
static bool report_directory(const struct docroot *docroot, const char *path) {
	char next[PATH_MAX];
	struct slice seen = SLICE(".");
	struct stat st;
	mode_t mode = docroot_stat(docroot, ".", &st) == 0 ? st.st_mode : 0;
	for (const char *slash = strchr(path, '/'); slash && slash - path < PATH_MAX; slash = strchr(slash + 1, '/')) {
		struct slice directory = {.at = path, .length = (size_t)(slash - path)};
		*text_copy(next, directory) = '\0';
		if (docroot_stat(docroot, next, &st) == -1) break;
		mode = st.st_mode;
		seen = directory;
	}
	if (mode & S_IXOTH)
		return notice(mode, "%s: a link on the way leads through a directory that the server may not enter", path);
	return notice(mode, "%.*s: mode %04o, the server may not enter it: chmod o+x", (int)seen.length, seen.at,
				  (unsigned)mode & 07777);
}

/* Returns whether another report of this kind may be printed. --check prints all. */
static bool may_report(const atomic_uint *reports) {
	return notice_checks() || atomic_load_explicit(reports, memory_order_relaxed) < UNSERVED_REPORTS_MAX;
}

static void count(atomic_uint *reports, const char *kind) {
	if (notice_checks()) return;
	if (atomic_fetch_add_explicit(reports, 1, memory_order_relaxed) + 1 == UNSERVED_REPORTS_MAX)
		notice(0, "further files that are %s are not reported: gatling --check lists all", kind);
}

void unserved_report(const struct docroot *docroot, const char *path) {
	static atomic_uint reports;
	struct stat st;
	bool new = false;
	if (!may_report(&reports)) return;
	const bool exists = docroot_stat(docroot, path, &st) == 0, readable = exists && st.st_mode & S_IROTH;
	const struct file_version version = exists ? file_version_of(&st) : (struct file_version){0};
	if (readable && S_ISREG(st.st_mode) && unserved_is_opaque(slice_of(path), (uint64_t)st.st_size)) {
		new =
			notice(st.st_mode,
				   "%s: not served, since it cannot be searched for a private key (more than %d bytes, or compressed): "
				   "if there is none in it, rename it",
				   path, UNSERVED_KEY_FILE_MAX);
	} else if (readable && S_ISREG(st.st_mode) && unserved_is_tls_file(&version)) {
		new = notice(st.st_mode, "%s: a key or certificate of HTTPS, so it is not served: chmod o-r", path);
	} else if (unserved_is_key(slice_of(path))) {
		return;
	} else if (!exists) {
		if (errno == EACCES) new = report_directory(docroot, path);
	} else if (S_ISREG(st.st_mode) && !(st.st_mode & S_IROTH)) {
		new = notice(st.st_mode, "%s: mode %04o, not readable by everyone: chmod o+r would publish it", path,
					 (unsigned)st.st_mode & 07777);
	}
	if (new) count(&reports, readable ? "not served" : "not readable by everyone");
}

/* Returns whether the target of the symlink at path, taken literally, leads out of the root. */
static bool leads_out(const char *path, const char *target) {
	int depth = 0;
	if (*target == '/') return true;
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) depth++;
	for (const char *name = target; name && depth >= 0; name = strchr(name, '/')) {
		while (*name == '/') name++;
		const struct slice rest = slice_of(name), first = slice_first(rest, slice_until(rest, '/'));
		if (slice_equal(first, SLICE(".."))) depth--;
		else if (first.length && !slice_equal(first, SLICE("."))) depth++;
	}
	return depth < 0;
}

bool unserved_report_link(const struct docroot *docroot, const char *path) {
	static atomic_uint reports;
	char target[PATH_MAX];
	struct stat st;
	if (!docroot->outside || !may_report(&reports)) return false;
	if (!docroot_readlink(docroot, path, target, sizeof target) || strstr(target, "://")) return false;
	if (docroot_stat(docroot, path, &st) == 0 || (errno != ENOENT && errno != ELOOP)) return false;
	if (!leads_out(path, target)) return false; /* to ".." in the root it may lead to itself */
	const size_t length = strlen(docroot->outside);
	const bool below = strncmp(target, docroot->outside, length) == 0 && target[length] == '/';
	const bool new =
		below ? notice(0,
					   "%s: a symbolic link to %s, which the server, started by root, cannot see: to it the served "
					   "directory is /, so make the link relative (ln -sr)",
					   path, target)
			  : notice(0,
					   "%s: a symbolic link to %s, which the server, started by root, cannot see: mount that in the "
					   "served directory (mount --bind), or start gatling as another user",
					   path, target);
	if (new) count(&reports, "links out of the served directory");
	return true;
}

void unserved_report_outdated(const char *path, const char *original, const struct file_version *original_version) {
	static atomic_uint reports;
	uint64_t state = (uint64_t)original_version->modified.tv_sec;
	if (may_report(&reports) && notice(state, "%s is older than %s, and not used: make it again", path, original))
		count(&reports, "older than its original");
}
