/* text_file.c - see text_file.h. */
#include "gatling/base/text_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/hash.h"
#include "gatling/base/notice.h"

/* 0 or an errno. */
static int read_all(int fd, size_t length, char *text) {
	for (size_t have = 0; have < length;) {
		ssize_t n = read(fd, text + have, length - have);
		if (n == -1 && errno == EINTR) continue;
		if (n <= 0) return n == 0 ? EAGAIN : errno; /* it is being written: the next look reads it */
		have += (size_t)n;
	}
	text[length] = '\0';
	return 0;
}

static int read_file(const struct docroot *docroot, const char *path, struct stat *st, char **text) {
	if (!S_ISREG(st->st_mode)) return EINVAL;
	int fd = docroot_open(docroot, path, 0), error = 0;
	if (fd == -1) return errno;
	if (fstat(fd, st) == -1) error = errno;
	else if (!S_ISREG(st->st_mode)) error = EINVAL;
	else if (st->st_size > TEXT_FILE_MAX) error = EFBIG;
	else if (!(*text = malloc((size_t)st->st_size + 1))) error = ENOMEM;
	else error = read_all(fd, (size_t)st->st_size, *text);
	if (error) {
		free(*text);
		*text = NULL;
	}
	close(fd);
	return error;
}

enum text_state text_file_look(struct text_file *f, const struct docroot *docroot, const char *path, char **text,
							   size_t *length) {
	struct stat st = {0};
	int error = docroot_stat(docroot, path, &st) == -1 ? errno : 0;
	if (error == ENOTDIR) error = ENOENT;
	struct file_version now = error ? (struct file_version){0} : file_version_of(&st);
	*text = NULL;
	if (f->looked && !f->recent && file_version_same(&now, &f->identity) && (!error || error == f->error))
		return TEXT_SAME;
	if (!error) error = read_file(docroot, path, &st, text);
	*length = *text ? (size_t)st.st_size : 0;
	f->identity = *text ? file_version_of(&st) : now;
	f->recent = (!error && file_version_recent(&f->identity, time(NULL))) || docroot_error_is_temporary(error);
	f->error = error;
	f->looked = true;
	return !error ? TEXT_NEW : error == ENOENT ? TEXT_NONE : TEXT_FAILED;
}

void text_file_complain(const struct text_file *f, const char *path, unsigned line, const char *what) {
	uint64_t key = 0;
	if (f->identity.mode) {
		const uint64_t state[] = {(uint64_t)f->identity.device, (uint64_t)f->identity.inode,
								  (uint64_t)f->identity.changed.tv_sec, (uint64_t)f->identity.changed.tv_nsec};
		key = hash_octets(0, (struct slice){.at = (const char *)state, .length = sizeof state});
	}
	if (line) notice(key, "%s:%u: %s", path, line, what);
	else notice(key, "%s: %s", path, what);
}

/* --- what was good last --- */

struct good {
	struct good *next;
	char *text;
	size_t length;
	char path[];
};

enum { GOOD_BUCKETS = 256 };

static struct {
	pthread_mutex_t mutex;
	struct good *bucket[GOOD_BUCKETS];
} good = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static char *copy(const char *text, size_t length) {
	char *copied = malloc(length + 1);
	if (!copied) return NULL;
	memcpy(copied, text, length);
	copied[length] = '\0';
	return copied;
}

/* Where it is, or would be; with the mutex. */
static struct good **find_good(const char *path) {
	struct slice name = {.at = path, .length = strlen(path)};
	struct good **link = &good.bucket[hash_octets(0, name) % GOOD_BUCKETS];
	while (*link && strcmp((*link)->path, path) != 0) link = &(*link)->next;
	return link;
}

static void forget_good(struct good **link) {
	struct good *g = *link;
	if (!g) return;
	*link = g->next;
	free(g->text);
	free(g);
}

void text_file_good(const char *path, const char *text, size_t length) {
	size_t path_length = strlen(path) + 1;
	struct good *g = text ? malloc(sizeof *g + path_length) : NULL;
	if (text && (!g || !(g->text = copy(text, length)))) {
		free(g);
		return;
	}
	pthread_mutex_lock(&good.mutex);
	struct good **link = find_good(path);
	forget_good(link);
	if (g) {
		g->length = length;
		memcpy(g->path, path, path_length);
		g->next = *link;
		*link = g;
	}
	pthread_mutex_unlock(&good.mutex);
}

char *text_file_last_good(const char *path, size_t *length) {
	pthread_mutex_lock(&good.mutex);
	const struct good *g = *find_good(path);
	char *text = g ? copy(g->text, g->length) : NULL;
	*length = text ? g->length : 0;
	pthread_mutex_unlock(&good.mutex);
	return text;
}
