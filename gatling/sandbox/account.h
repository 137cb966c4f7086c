/* account.h - changes the user and the root of a process. */
#ifndef GATLING_SANDBOX_ACCOUNT_H
#define GATLING_SANDBOX_ACCOUNT_H

#include <sys/types.h>

enum { ACCOUNT_NAME = 256 }; /* bytes of a user's name, with its NUL */

struct account {
	uid_t uid;
	gid_t gid;
	char name[ACCOUNT_NAME]; /* of the user whose groups it has besides gid; "": it has none */
};

/* Looks up a user by name, UID or UID:GID. Call it before the root changes, which hides the files with users. Returns
 * NULL, or what is wrong. */
const char *account_find(const char *name, struct account *account);

/* Becomes the user permanently, in the group gid alone. Returns NULL, or what is wrong. */
const char *account_become(const struct account *account);

/* The same, but in all groups of the user. Call it before the root changes. */
const char *account_become_with_groups(const struct account *account);

/* Makes the working directory the root. Returns 0, or -1 with errno. */
int account_chroot(void);

#endif
