/* unserved.c - see unserved.h. */
#include "gatling/files/unserved.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>

#include "gatling/base/notice.h"
#include "gatling/base/text.h"

bool unserved_is_key(struct slice path) {
	return slice_ends_nocase(path, SLICE(".pem")) || slice_ends_nocase(path, SLICE(".key"));
}

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
	if (!may_report(&reports) || unserved_is_key(slice_of(path))) return;
	if (docroot_stat(docroot, path, &st) == -1) {
		if (errno == EACCES) new = report_directory(docroot, path);
	} else if (S_ISREG(st.st_mode) && !(st.st_mode & S_IROTH)) {
		new = notice(st.st_mode, "%s: mode %04o, not readable by everyone: chmod o+r would publish it", path,
					 (unsigned)st.st_mode & 07777);
	}
	if (new) count(&reports, "not readable by everyone");
}

void unserved_report_outdated(const char *path, const char *original, const struct file_version *original_version) {
	static atomic_uint reports;
	uint64_t state = (uint64_t)original_version->modified.tv_sec;
	if (may_report(&reports) && notice(state, "%s is older than %s, and not used: make it again", path, original))
		count(&reports, "older than its original");
}
