/* account.h - the user that a process becomes, and the root that it gets. */
#ifndef GATLING_SANDBOX_ACCOUNT_H
#define GATLING_SANDBOX_ACCOUNT_H

#include <sys/types.h>

struct account {
	uid_t uid;
	gid_t gid;
};

/* Looks up a user: a name, UID or UID:GID; before the root changes, which hides the files that say so. Returns NULL, or
 * why that cannot be. */
const char *account_find(const char *name, struct account *account);

/* Becomes the user for good. Returns 0, or -1 with errno. */
int account_become(const struct account *account);

/* Makes the working directory the root. Returns 0, or -1 with errno. */
int account_chroot(void);

#endif
