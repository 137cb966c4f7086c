/* report.c - see report.h. */
#include "gatling/files/report.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/files/key_file.h"

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

void report_unserved(const struct docroot *docroot, const char *path) {
	static atomic_uint reports;
	struct stat st;
	bool new = false;
	if (!may_report(&reports)) return;
	const bool exists = docroot_stat(docroot, path, &st) == 0, readable = exists && st.st_mode & S_IROTH;
	const struct file_version version = exists ? file_version_of(&st) : (struct file_version){0};
	if (readable && S_ISREG(st.st_mode) && key_file_is_opaque(slice_of(path), (uint64_t)st.st_size)) {
		new =
			notice(st.st_mode,
				   "%s: not served, since it cannot be searched for a private key (more than %d bytes, or compressed): "
				   "if there is none in it, rename it",
				   path, KEY_FILE_MAX);
	} else if (readable && S_ISREG(st.st_mode) && key_file_is_of_tls(&version)) {
		new = notice(st.st_mode, "%s: a key or certificate of HTTPS, so it is not served: chmod o-r", path);
	} else if (key_file_named(slice_of(path))) {
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

bool report_link(const struct docroot *docroot, const char *path) {
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

void report_outdated(const char *path, const char *original, const struct file_version *original_version) {
	static atomic_uint reports;
	uint64_t state = (uint64_t)original_version->modified.tv_sec;
	if (may_report(&reports) && notice(state, "%s is older than %s, and not used: make it again", path, original))
		count(&reports, "older than its original");
}
