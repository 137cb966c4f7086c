/* trust.c - see trust.h. Each directory is opened, so that its owner, and what is in it, are those of the same one;
 * that the file in the last one is the file that was read, its inode tells. */
#include "gatling/site/rules/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/platform.h"

struct trust {
	uid_t starter, owner; /* owner: of the site's directory */
	char *why;
};

/* Returns how messages name a path. */
static const char *shown(const char *path) {
	if (strcmp(path, ".") == 0) return "the served directory";
	return strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

static bool is_owner(const struct trust *t, uid_t user, const char *path) {
	if (user == 0 || user == t->starter || user == t->owner) return true;
	snprintf(t->why, TRUST_WHY_MAX, "user %lu owns %.300s: chown it to root, or to the user who starts gatling",
			 (unsigned long)user, shown(path));
	return false;
}

static bool is_closed(const struct trust *t, mode_t mode, const char *path) {
	if (!(mode & S_IWOTH)) return true;
	snprintf(t->why, TRUST_WHY_MAX, "everybody may write to %.300s (mode %04o): chmod o-w", shown(path),
			 (unsigned)mode & 07777);
	return false;
}

/* Returns false, and keeps the reason, from errno, why it cannot be found out who may write to path. */
static bool distrust_unknown(const struct trust *t, const char *path) {
	if (!docroot_error_is_temporary(errno))
		snprintf(t->why, TRUST_WHY_MAX, "who may write to %.300s cannot be found out: %s", shown(path),
				 strerror(errno));
	return false;
}

/* Writes the path of the directory that holds path to directory (PATH_MAX bytes). Returns the name in it. */
static const char *split(const char *path, char *directory) {
	const char *slash = strrchr(path, '/');
	const int length = slash == path ? 1 : (int)(slash - path);
	snprintf(directory, PATH_MAX, "%.*s", slash ? length : 1, slash ? path : ".");
	return slash ? slash + 1 : path;
}

/* Does what look() does for a path on another machine. */
static bool look_elsewhere(const struct trust *t, const struct tree *tree, const char *path, const char *directory,
						   struct stat *st, char *target) {
	const struct remote_found *found = remote_find(tree->remote, path, REMOTE_HOLDER);
	if (!found) return false;
	errno = found->error ? found->error : found->holder_error;
	if (errno) return distrust_unknown(t, directory);
	*st = found->link;
	*target = '\0';
	const bool link = S_ISLNK(st->st_mode);
	errno = link ? found->leads_to_error : 0;
	if (errno) return distrust_unknown(t, directory);
	if (link) memcpy(target, found->leads_to, strlen(found->leads_to) + 1);
	return is_owner(t, found->holder.st_uid, directory) && is_closed(t, found->holder.st_mode, directory) &&
		   (!link || is_owner(t, st->st_uid, path));
}

/* Checks the directory that holds path, and fills in *st. If path is a symlink, checks its owner, too, and writes its
 * target to target (PATH_MAX bytes). Returns false if it is not trusted. */
static bool look(const struct trust *t, const struct tree *tree, const char *path, struct stat *st, char *target) {
	char directory[PATH_MAX];
	struct stat holder;
	ssize_t length = 1;
	const char *name = split(path, directory);
	const int fd = tree_open(tree, directory, O_DIRECTORY | PLATFORM_PATH, false);
	if (fd == -1 && errno == EREMOTE) return look_elsewhere(t, tree, path, directory, st, target);
	if (fd == -1) return distrust_unknown(t, directory);
	bool known = fstat(fd, &holder) == 0 && fstatat(fd, name, st, AT_SYMLINK_NOFOLLOW) == 0;
	const bool link = known && S_ISLNK(st->st_mode);
	if (link) length = readlinkat(fd, name, target, PATH_MAX);
	const int error = length < PATH_MAX ? errno : ENAMETOOLONG;
	close(fd);
	errno = error;
	if (!known || length <= 0 || length == PATH_MAX) return distrust_unknown(t, directory);
	if (link) target[length] = '\0';
	return is_owner(t, holder.st_uid, directory) && is_closed(t, holder.st_mode, directory) &&
		   (!link || is_owner(t, st->st_uid, path));
}

/* Follows the path to the file, which has that version. Returns false if what leads there is not trusted. */
static bool follow(const struct trust *t, const struct tree *tree, const char *path,
				   const struct file_version *version) {
	char target[PATH_MAX], directory[PATH_MAX], next[2 * PATH_MAX];
	struct stat st;
	snprintf(next, sizeof next, "%s", path);
	for (int links = 0; links <= TRUST_LINKS_MAX && strlen(next) < PATH_MAX; links++) {
		if (!look(t, tree, next, &st, target)) return false;
		/* if it is another file, it has been replaced meanwhile */
		if (!S_ISLNK(st.st_mode))
			return S_ISREG(st.st_mode) && st.st_dev == version->device && st.st_ino == version->inode;
		(void)split(next, directory);
		if (*target == '/') snprintf(next, sizeof next, "%s", target);
		else snprintf(next, sizeof next, "%s/%s", directory, target);
	}
	errno = ELOOP;
	return distrust_unknown(t, path);
}

bool trust_file(const struct tree *tree, uid_t starter, const char *site, const char *path,
				const struct text_file *file, char *why) {
	struct trust t = {.starter = starter, .owner = 0, .why = why};
	const bool inner = *site != '\0';
	struct stat st;
	*why = '\0';
	if (!file->looked || file->error) return false;
	if (tree_stat(tree, ".", &st) == -1) return distrust_unknown(&t, ".");
	if (inner && !is_closed(&t, st.st_mode, ".")) return false;
	if (inner && tree_stat(tree, site, &st) == -1) return distrust_unknown(&t, site);
	t.owner = st.st_uid;
	return is_owner(&t, file->owner, path) && is_closed(&t, file->version.mode, path) &&
		   follow(&t, tree, path, &file->version);
}
