/* text_file.c - see text_file.h. */
#include "gatling/site/rules/text_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "gatling/base/slice.h"
#include "gatling/base/lines.h"
#include "gatling/base/notice.h"

/* Returns the text of a file, or NULL with errno. */
static char *read_text(const struct tree *tree, const char *path, struct stat *st) {
	if (S_ISREG(st->st_mode)) return tree_load(tree, path, LINES_TEXT_MAX, st);
	errno = EINVAL; /* to open a fifo would wake its writer */
	return NULL;
}

/* Calls stat(2). Returns 0 or an errno: ENOENT if the file does not exist, ENOLINK if it is a symlink to nothing, since
 * its owner means that there is a file. */
static int stat_file(const struct tree *tree, const char *path, struct stat *st) {
	if (tree_lstat(tree, path, st) == -1) return errno == ENOTDIR ? ENOENT : errno;
	if (tree_stat(tree, path, st) == 0) return 0;
	*st = (struct stat){0};
	return errno == ENOENT || errno == ENOTDIR ? ENOLINK : errno;
}

enum text_state text_file_look(struct text_file *f, const struct tree *tree, const char *path, char **text,
							   size_t *length) {
	struct stat st = {0};
	tree_expect(tree, path, REMOTE_READ);
	int error = stat_file(tree, path, &st);
	struct file_version now = error ? (struct file_version){0} : file_version_of(&st);
	*text = NULL;
	if (f->looked && !f->recent && file_version_same(&now, &f->version) && (!error || error == f->error))
		return TEXT_SAME;
	if (!error && !(*text = read_text(tree, path, &st))) error = errno;
	*length = *text ? (size_t)st.st_size : 0;
	f->version = *text ? file_version_of(&st) : now;
	f->owner = *text ? st.st_uid : (uid_t)-1;
	f->recent = (!error && file_version_recent(&f->version)) || docroot_error_is_temporary(error);
	f->error = error;
	f->looked = true;
	return !error ? TEXT_NEW : error == ENOENT ? TEXT_NONE : TEXT_FAILED;
}

void text_file_again(struct text_file *f) {
	f->error = ENOMEM;
	f->recent = true;
}

void text_file_complain(const struct text_file *f, const char *path, unsigned line, const char *mistake) {
	uint64_t key = f->version.mode ? file_version_hash(0, &f->version) : 0;
	if (line) notice(key, "%s:%u: %s", path, line, mistake);
	else notice(key, "%s: %s", path, mistake);
}

/* --- the last good texts --- */

struct good_text {
	struct good_text *next;
	size_t length;
	char *text; /* behind the path */
	char path[];
};

enum { GOOD_BUCKETS = 256 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct good_text *bucket[GOOD_BUCKETS]; /* guarded by the mutex */

/* Returns the link to the text of a path, or to where that would be added. The mutex must be locked. */
static struct good_text **find_good(const char *path) {
	struct good_text **link = &bucket[slice_hash(0, slice_of(path)) % GOOD_BUCKETS];
	while (*link && strcmp((*link)->path, path) != 0) link = &(*link)->next;
	return link;
}

void text_file_good(const char *path, const char *text, size_t length) {
	size_t path_size = strlen(path) + 1;
	struct good_text *g = text ? malloc(sizeof *g + path_size + length) : NULL;
	if (text && !g) return;
	pthread_mutex_lock(&mutex);
	struct good_text **link = find_good(path), *before = *link;
	if (before) *link = before->next;
	free(before);
	if (g) {
		*g = (struct good_text){.next = *link, .length = length, .text = g->path + path_size};
		memcpy(g->path, path, path_size);
		memcpy(g->text, text, length);
		*link = g;
	}
	pthread_mutex_unlock(&mutex);
}

char *text_file_last_good(const char *path, size_t *length) {
	pthread_mutex_lock(&mutex);
	const struct good_text *g = *find_good(path);
	char *text = g ? malloc(g->length + 1) : NULL;
	if (text) memcpy(text, g->text, *length = g->length);
	if (text) text[g->length] = '\0';
	pthread_mutex_unlock(&mutex);
	return text;
}
