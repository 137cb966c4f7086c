/* account.h - changes the user and the root of a process. */
#ifndef GATLING_SANDBOX_ACCOUNT_H
#define GATLING_SANDBOX_ACCOUNT_H

#include <sys/types.h>

struct account {
	uid_t uid;
	gid_t gid;
};

/* Looks up a user by name, UID or UID:GID. Call it before the root changes, which hides the files with users. Returns
 * NULL, or what is wrong. */
const char *account_find(const char *name, struct account *account);

/* Becomes the user permanently. Returns NULL, or what is wrong. */
const char *account_become(const struct account *account);

/* Makes the working directory the root. Returns 0, or -1 with errno. */
int account_chroot(void);

#endif
