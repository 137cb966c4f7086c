/* account.c - see account.h. */
#include "gatling/sandbox/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keeps the name of the user. One that is too long gives no groups. */
static void keep_name(struct account *a, const struct passwd *user) {
	if (strlen(user->pw_name) < sizeof a->name) memcpy(a->name, user->pw_name, strlen(user->pw_name) + 1);
}

/* Parses UID or UID:GID in digits. Returns false if it is neither. */
static bool parse_ids(const char *text, struct account *a) {
	char *end;
	unsigned long uid = strtoul(text, &end, 10), gid = uid;
	if (*text < '0' || *text > '9') return false;
	const struct passwd *user = getpwuid((uid_t)uid);
	if (user) gid = user->pw_gid;
	const bool has_groups = user && *end != ':'; /* with UID:GID it has no other group */
	if (*end == ':' && end[1] >= '0' && end[1] <= '9') gid = strtoul(end + 1, &end, 10);
	*a = (struct account){.uid = (uid_t)uid, .gid = (gid_t)gid};
	if (has_groups) keep_name(a, user);
	return !*end && uid < UINT32_MAX && gid < UINT32_MAX;
}

const char *account_find(const char *name, struct account *a) {
	errno = 0;
	const struct passwd *user = getpwnam(name);
	if (!user && parse_ids(name, a)) return NULL;
	if (!user) return errno ? strerror(errno) : "no such user";
	*a = (struct account){.uid = user->pw_uid, .gid = user->pw_gid};
	keep_name(a, user);
	return NULL;
}

/* Becomes the user, if the groups were set. Returns NULL, or what is wrong. */
static const char *become(const struct account *a, int groups) {
	if (groups == 0 && setgid(a->gid) == 0 && setuid(a->uid) == 0) return NULL;
	return errno == EPERM ? "only root can do that" : strerror(errno);
}

const char *account_become(const struct account *a) { return become(a, setgroups(1, &a->gid)); }

const char *account_become_with_groups(const struct account *a) {
	return a->name[0] ? become(a, initgroups(a->name, a->gid)) : account_become(a);
}

/* The leak checker of a sanitized build needs /proc, which a chroot hides. */
#ifdef __SANITIZE_ADDRESS__
static bool has_other_root;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return has_other_root; }
#endif

int account_chroot(void) {
	if (chroot(".") == -1) return -1;
#ifdef __SANITIZE_ADDRESS__
	has_other_root = true;
#endif
	return 0;
}
