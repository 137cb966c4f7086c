/* tree.c - see tree.h. */
#include "gatling/files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "gatling/files/report.h"

static int fail(int error) {
	errno = error;
	return -1;
}

void tree_expect(const struct tree *t, const char *path, unsigned what) {
	if (tree_is_remote(t, slice_of(path))) (void)remote_find(t->remote, path, what);
}

void tree_expect_file(const struct tree *t, const char *path, unsigned what) {
	if (tree_is_remote(t, slice_of(path))) remote_expect(t->remote, path, what);
}

/* Notes the first part of a path, up to a slash or its end, that leads out of the mount of the root. */
static void note_link(const struct tree *t, const char *path) {
	char part[PATH_MAX];
	if (strlen(path) >= sizeof part) return;
	for (const char *end = path; *end; end++) {
		end += strcspn(end, "/");
		*text_copy(part, (struct slice){.at = path, .length = (size_t)(end - path)}) = '\0';
		const int fd = docroot_open_in_mount(&t->docroot, part, PLATFORM_PATH, false);
		if (fd != -1) close(fd);
		else if (errno == EXDEV) remote_note_link(t->remote, part);
		if (fd == -1 || !*end) return;
	}
}

int tree_open(const struct tree *t, const char *path, int flags, bool at_once) {
	if (!t->remote)
		return at_once ? docroot_open_at_once(&t->docroot, path, flags) : docroot_open(&t->docroot, path, flags);
	if (tree_is_remote(t, slice_of(path))) return fail(EREMOTE);
	const int fd = docroot_open_in_mount(&t->docroot, path, flags, at_once);
	if (fd != -1 || errno != EXDEV) return fd;
	note_link(t, path);
	return fail(EREMOTE);
}

/* Fills in *st for a path that is not on another machine. flags: O_NOFOLLOW for lstat(2). */
static int stat_here(const struct tree *t, const char *path, int flags, bool at_once, struct stat *st) {
	return docroot_stat_open(tree_open(t, path, flags | PLATFORM_PATH, at_once), st);
}

int tree_stat_here(const struct tree *t, const char *path, struct stat *st) {
	return t->remote ? stat_here(t, path, 0, false, st) : docroot_stat(&t->docroot, path, st);
}

/* Does what tree_stat() does where there are other machines. */
static int stat_anywhere(const struct tree *t, const char *path, bool at_once, struct stat *st) {
	if (stat_here(t, path, 0, at_once, st) == 0) return 0;
	if (errno != EREMOTE) return -1;
	const struct remote_found *found = remote_find(t->remote, path, 0);
	if (!found) return -1;
	if (found->error || found->target_error) return fail(found->error ? found->error : found->target_error);
	*st = found->target;
	return 0;
}

int tree_stat(const struct tree *t, const char *path, struct stat *st) {
	return t->remote ? stat_anywhere(t, path, false, st) : docroot_stat(&t->docroot, path, st);
}

int tree_stat_at_once(const struct tree *t, const char *path, struct stat *st) {
	return t->remote ? stat_anywhere(t, path, true, st) : docroot_stat_at_once(&t->docroot, path, st);
}

int tree_lstat(const struct tree *t, const char *path, struct stat *st) {
	if (!t->remote) return docroot_lstat(&t->docroot, path, st);
	if (stat_here(t, path, O_NOFOLLOW, false, st) == 0) return 0;
	if (errno != EREMOTE) return -1;
	const struct remote_found *found = remote_find(t->remote, path, 0);
	if (!found) return -1;
	if (found->error) return fail(found->error);
	*st = found->link;
	return 0;
}

bool tree_readlink(const struct tree *t, const char *path, char *target, size_t size) {
	struct stat st;
	if (!t->remote) return docroot_readlink(&t->docroot, path, target, size);
	if (tree_lstat(t, path, &st) == -1) return false;
	errno = EINVAL;
	const struct remote_found *found = S_ISLNK(st.st_mode) ? remote_find(t->remote, path, 0) : NULL;
	if (!found) return false;
	errno = found->error ? found->error : found->leads_to_error;
	if (errno) return false;
	errno = ENAMETOOLONG;
	if (strlen(found->leads_to) >= size) return false;
	*text_copy_string(target, found->leads_to) = '\0';
	return true;
}

/* Returns a copy of the content, or NULL with errno. */
static char *copy_content(const struct remote_found *f, size_t max, struct stat *st) {
	int error = f->error ? f->error : f->target_error ? f->target_error : f->content_error;
	if (!error && (size_t)f->content.st_size > max) error = EFBIG;
	if (!error && (!f->start || f->length != (size_t)f->content.st_size)) error = EAGAIN;
	char *text = error ? NULL : malloc(f->length + 1);
	errno = error ? error : ENOMEM;
	if (!text) return NULL;
	memcpy(text, f->start, f->length + 1);
	*st = f->content;
	return text;
}

char *tree_load(const struct tree *t, const char *path, size_t max, struct stat *st) {
	const int fd = tree_open(t, path, 0, false);
	if (fd != -1 || errno != EREMOTE) return file_load(fd, max, st);
	const struct remote_found *found = remote_find(t->remote, path, REMOTE_READ);
	return found ? copy_content(found, max, st) : NULL;
}

void tree_report_unserved(const struct tree *t, const char *path) {
	struct stat st;
	if (tree_stat_here(t, path, &st) == -1 && errno == EREMOTE) remote_report(t->remote, path);
	else report_unserved(&t->docroot, path);
}
