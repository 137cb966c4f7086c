/* mounts.h - where file systems are mounted that are on other machines or that programs serve (NFS, FUSE). A system
 * call for a file there may take long, or never return. Linux; elsewhere there are none. */
#ifndef GATLING_FILES_MOUNTS_H
#define GATLING_FILES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "gatling/base/slice.h"

enum { MOUNTS_MAX = 8 }; /* of such file systems below the document root that are told apart */

struct mounts;

/* Reads what is mounted. directory: the path of the document root, as this process sees it now; it is copied. May be
 * called before a chroot(2) that hides /proc. Returns NULL without memory. */
struct mounts *mounts_open(const char *directory);
void mounts_close(struct mounts *mounts); /* NULL is allowed */

/* Returns the descriptor that tells of changes, or -1. */
int mounts_descriptor(const struct mounts *mounts);

/* Reads again what is mounted, if that has changed. Returns a number that is another one after each change. Any thread
 * may call this and the next function. */
unsigned mounts_update(struct mounts *mounts);

/* What is mounted. */
struct mounts_found {
	bool any; /* there are such file systems, perhaps not below the document root: symlinks may lead there */
	unsigned count;
	struct slice path[MOUNTS_MAX]; /* of those below it, relative to it; more than MOUNTS_MAX are left out */
	char *text;                    /* with these paths, malloc'd */
};

/* Fills in *found. Returns false without memory. */
bool mounts_find(struct mounts *mounts, struct mounts_found *found);

#endif
