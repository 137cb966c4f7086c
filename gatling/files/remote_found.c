/* remote_found.c - see remote_found.h. All of this may hang. */
#include "gatling/files/remote_found.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "io/at_once.h"

enum {
	ATTEMPTS = 3,           /* to read a file that changes meanwhile */
	AHEAD = 2 * 1024 * 1024 /* bytes that are read ahead of a longer file: several pieces at a time */
};

static void step(const struct remote_search *s) { atomic_fetch_add(s->steps, 1); }

/* Opens the directory that has the path, and looks at what is in it, so that both are found out about the same one.
 * Returns 0 or the errno of error. */
static int look_from_holder(const struct remote_search *s, struct remote_found *f) {
	char directory[PATH_MAX] = ".";
	const char *slash = strrchr(s->path, '/');
	const size_t length = slash ? (size_t)(slash - s->path) : 0;
	if (length >= sizeof directory) return f->holder_error = ENAMETOOLONG;
	if (length) *text_copy(directory, (struct slice){.at = s->path, .length = length}) = '\0';
	step(s);
	const int fd = docroot_open(s->docroot, directory, O_DIRECTORY | PLATFORM_PATH);
	if (fd == -1) return f->holder_error = errno;
	step(s);
	f->holder_error = fstat(fd, &f->holder) == -1 ? errno : 0;
	step(s);
	const char *name = slash ? slash + 1 : s->path;
	const int error = fstatat(fd, name, &f->link, AT_SYMLINK_NOFOLLOW) == -1 ? errno : 0;
	close(fd);
	return error;
}

/* Returns 0 or an errno. */
static int read_link(const struct remote_search *s, struct remote_found *f) {
	char target[PATH_MAX];
	if (!docroot_readlink(s->docroot, s->path, target, sizeof target)) return errno;
	return (f->leads_to = strdup(target)) ? 0 : ENOMEM;
}

static void look_at_target(const struct remote_search *s, struct remote_found *f) {
	step(s);
	if (S_ISLNK(f->link.st_mode)) f->leads_to_error = read_link(s, f);
	step(s);
	f->target_error = docroot_stat(s->docroot, s->path, &f->target) == -1 ? errno : 0;
}

/* Reads the start, as long as it changes. Returns 0 or an errno. */
static int read_unchanged(const struct remote_search *s, struct remote_found *f, int fd) {
	for (int i = 0; i < ATTEMPTS; i++) {
		const struct file_version before = file_version_of(&f->content);
		const uint64_t size = (uint64_t)f->content.st_size;
		if (s->what & REMOTE_READ && size > REMOTE_WHOLE) return EFBIG;
		const size_t most = s->what & REMOTE_READ ? REMOTE_WHOLE : REMOTE_START;
		f->length = size < most ? (size_t)size : most;
		f->start = file_read_pieces(fd, f->length, REMOTE_START, s->stop, s->steps);
		if (!f->start && errno != EAGAIN) return errno;
		step(s);
		if (fstat(fd, &f->content) == -1) return errno;
		const struct file_version after = file_version_of(&f->content);
		if (f->start && file_version_same(&before, &after)) return 0;
		free(f->start);
		f->start = NULL;
	}
	return s->what & REMOTE_READ ? EAGAIN : 0;
}

/* Opens the file, and reads what is wanted of it. Returns 0 or an errno. */
static int open_content(const struct remote_search *s, struct remote_found *f) {
	step(s);
	const int fd = docroot_open(s->docroot, s->path, 0);
	if (fd == -1) return errno;
	step(s);
	int error = fstat(fd, &f->content) == -1 ? errno : S_ISREG(f->content.st_mode) ? 0 : EINVAL;
	const off_t size = f->content.st_size;
	if (!error && s->what & REMOTE_OPENED && size > REMOTE_START) io_start_reading(fd, 0, size < AHEAD ? size : AHEAD);
	if (!error) error = read_unchanged(s, f, fd);
	const bool stays = !error && s->what & REMOTE_OPENED && (f->content.st_size > REMOTE_START || !f->start);
	if (stays) {
		f->fd = fd;
		return 0;
	}
	step(s);
	close(fd);
	return error;
}

static int collect_names(const struct remote_search *s, DIR *stream, struct remote_found *f) {
	FILE *out = open_memstream(&f->names, &f->names_length);
	if (!out) return ENOMEM;
	(void)fputc('\0', out);
	int error = 0;
	for (unsigned count = 0; !error; count++) {
		step(s);
		errno = 0;
		const struct dirent *entry = readdir(stream);
		error = errno;
		if (!entry) break;
		if (count == REMOTE_NAMES_MAX) error = E2BIG;
		for (const char *c = entry->d_name; *c; c++) (void)fputc(*c >= 'A' && *c <= 'Z' ? *c | ' ' : *c, out);
		(void)fputc('\0', out);
	}
	const bool short_of_memory = ferror(out); /* glibc's fclose() does not report that */
	return fclose(out) != 0 || short_of_memory || !f->names ? ENOMEM : error;
}

/* Returns whether an open directory is certainly the same as before, and calls of readdir(3) have not missed a name
 * that was moved meanwhile. */
static bool is_unmoved(int fd, const struct stat *before) {
	struct stat now;
	if (fstat(fd, &now) == -1) return false;
	const struct file_version one = file_version_of(before), other = file_version_of(&now);
	return file_version_same(&one, &other) && !file_version_recent(&other);
}

/* Reads the names. Returns 0 or an errno. */
static int read_names(const struct remote_search *s, struct remote_found *f) {
	step(s);
	const int fd = docroot_open(s->docroot, s->path, O_DIRECTORY);
	DIR *stream = fd == -1 ? NULL : fdopendir(fd);
	struct stat before;
	int error = errno;
	step(s);
	if (stream) {
		error = fstat(fd, &before) == -1 ? errno : collect_names(s, stream, f);
		if (!error && !is_unmoved(fd, &before)) error = EAGAIN;
		closedir(stream);
	} else if (fd != -1) {
		close(fd);
	}
	return error;
}

bool remote_found_lacks(const struct remote_found *f, struct slice name) {
	char wanted[NAME_MAX + 3] = "";
	if (f->names_error || name.length > NAME_MAX) return false;
	for (size_t i = 0; i < name.length; i++) {
		const char c = name.at[i];
		if (c & '\x80') return false; /* a file system may know several forms of other letters */
		wanted[i + 1] = (char)(c >= 'A' && c <= 'Z' ? c | ' ' : c);
	}
	return !memmem(f->names, f->names_length, wanted, name.length + 2);
}

void remote_found_search(const struct remote_search *s, struct remote_found *f) {
	*f = (struct remote_found){.what = s->what, .leads_to_error = EINVAL, .fd = -1};
	if (s->what & REMOTE_HOLDER) {
		f->error = look_from_holder(s, f);
	} else {
		step(s);
		f->error = docroot_lstat(s->docroot, s->path, &f->link) == -1 ? errno : 0;
	}
	if (f->error) return;
	f->target = f->link;
	/* a directory on the way may lead out of the root */
	if (S_ISLNK(f->link.st_mode) || s->docroot->symlinks_inside) look_at_target(s, f);
	f->names_error = f->target_error;
	if (s->what & REMOTE_NAMES && !f->names_error) f->names_error = read_names(s, f);
	if (f->target_error || !(s->what & (REMOTE_OPENED | REMOTE_READ))) return;
	if (!S_ISREG(f->target.st_mode)) { /* opening a fifo would wake its writer */
		f->content_error = EINVAL;
		return;
	}
	const struct file_version now = file_version_of(&f->target);
	f->same = s->known && file_version_same(s->known, &now) && !file_version_recent(&now);
	if (!f->same) f->content_error = open_content(s, f);
}

void remote_found_free(struct remote_found *f) {
	free(f->leads_to);
	free(f->start);
	free(f->names);
	f->leads_to = f->start = f->names = NULL;
}
