/* lookout.h - a process that looks up DIR by its name twice a second, so that the keeper never waits for a disk. */
#ifndef GATLING_KEEPER_LOOKOUT_H
#define GATLING_KEEPER_LOOKOUT_H

#include <stdbool.h>
#include <sys/types.h>

#include "gatling/keeper/link.h"

enum {
	LOOKOUT_MS = 500,   /* interval */
	LOOKOUT_ERRORS = 2, /* looks in a row after which DIR is missing: it may be gone for a moment */
	LOOKOUT_ALIVE = 4,  /* looks that find nothing new, after which it says that it looks */
	LOOKOUT_LATE_S = 10 /* seconds without a word after which the disk of DIR does not answer */
};

/* What was seen at the name of DIR. */
struct sighting {
	int error; /* 0, or an errno: there is no directory */
	struct directory_id directory;
	mode_t mode; /* of the directory, whose change may let a server in */
	uid_t user;
	gid_t group;
	unsigned order; /* how many orders had come before */
	bool known;     /* it is the same as before */
};

/* Starts the process. path: absolute. *channel becomes a socket from
 * which each new sighting is to be read, and one that is known every LOOKOUT_ALIVE looks; a byte written to it is an
 * order to look again, and to answer in any case.
 * sandbox: limit its system calls. Returns its number, or -1 with errno. */
pid_t lookout_start(const char *path, bool sandbox, int *channel);

#endif
