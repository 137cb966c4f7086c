/* realm.h - what a .htaccess or .htaccess_global says: who may have the files of a directory or a site, and which
 * passwords they need. Files are read again when they change. If one is empty, unreadable or malformed, nobody may. */
#ifndef GATLING_SITE_ACCESS_REALM_H
#define GATLING_SITE_ACCESS_REALM_H

#include "gatling/files/tree.h"
#include "gatling/site/access/access_rules.h"

enum {
	AUTH_REALM_MAX = 256,  /* bytes of the name of a realm */
	AUTH_REALMS_MAX = 1024 /* files that are remembered */
};

/* Zero: nobody may. */
enum realm_state { REALM_CLOSED, REALM_UNAVAILABLE /* for a reason that may soon be gone */, REALM_GOOD };

/* One version of one file. */
struct realm {
	unsigned references;
	enum realm_state state;
	struct access_rules rules; /* none unless it is good */
	uint64_t id;               /* of the content: while that stays the same, clients need not authenticate again */
	struct slice users;        /* lines USER:HASH: there may be a megabyte of them, so nothing else is kept */
	uint64_t owner;            /* see struct password_question */
	unsigned kinds;            /* of hashes that are not measured (password_cost.h): see realm_is_known() */
	struct realm_source *source;
};

struct realms; /* those of a worker */

/* measures: hashes may be measured at once, which takes long. Returns NULL without memory. */
struct realms *realms_new(const struct tree *tree, bool measures);
void realms_free(struct realms *realms);

/* Says by which names the root is known outside of any chroot(2), for absolute paths in files: its path, and how the
 * command line names it. Without this call they lead nowhere. */
void realms_set_root(struct realms *realms, const char *path, const char *name);

/* Returns the realm of the file at path, whose inode is known, with a reference. Reads the file if it has changed. */
struct realm *realms_find(struct realms *realms, const char *path, const struct stat *st);

/* Returns the realm of a file that cannot be read, with a reference. Reports the file at path; NULL: none. */
struct realm *realms_unreadable(struct realms *realms, const char *path, int error);

void realm_release(struct realm *realm); /* may be NULL */

/* Reports, once, what is wrong with a good realm in some place. */
void realm_complain(const struct realm *realm, const char *mistake);

/* Returns whether it is known if the hashes of the realm may be checked; otherwise realm->kinds are to be measured. */
bool realm_is_known(struct realm *realm);

#endif
