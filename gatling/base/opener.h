/* opener.h - a process of its own that stays outside the root directory, and as whoever started the server, to open
 * again the files that the command line names: certificates that change, the log after it was renamed. It hands over
 * what it is asked for by name, in places that were fixed before it began, and never a directory: so nothing leads out
 * of the root from the server itself. Functions that ask it may be called by several threads. */
#ifndef GATLING_BASE_OPENER_H
#define GATLING_BASE_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct opener;

enum {
	OPENER_PLACES = 160,           /* at most */
	OPENER_NAME = 512,             /* bytes of a name, with its NUL */
	OPENER_LIST = 16 * 1024 * 1024 /* bytes of the names in a directory */
};

/* What may be asked for in a place. */
enum opener_rule {
	OPENER_FILE,  /* the file of that name, and with ".ocsp" behind it: to be read */
	OPENER_PEMS,  /* NAME.pem and NAME.pem.ocsp: to be read, and which there are */
	OPENER_PAIRS, /* NAME/fullchain.pem, NAME/privkey.pem, NAME/fullchain.pem.ocsp: the same */
	OPENER_LOG    /* the file of that name: to be appended to, and made */
};

/* NULL: ENOMEM. */
struct opener *opener_new(void);

/* Before opener_start(): adds a directory, whose descriptor it takes over. name: of the file, for OPENER_FILE and
 * OPENER_LOG; else NULL. Its number; -1 with errno. */
int opener_add(struct opener *opener, int directory, enum opener_rule rule, const char *name);

/* Starts the process, with no thread running yet, and closes the directories here. Without places there is none. 0, or
 * -1 with errno. */
int opener_start(struct opener *opener);

/* Ends the process: nothing more is to be opened. */
void opener_stop(struct opener *opener);
void opener_free(struct opener *opener); /* NULL is allowed */

/* open(2), fstatat(2) with AT_SYMLINK_NOFOLLOW or without. -1 with errno; EPERM: that name is not of the place; EPIPE:
 * the process has gone. What is read is a regular file. "." for opener_stat() is a place that has names, itself. */
int opener_open(struct opener *opener, int place, const char *name);
int opener_stat(struct opener *opener, int place, const char *name, struct stat *st);

/* The names in the directory, each followed by a NUL, malloc'd; *length: bytes. NULL with errno. */
char *opener_list(struct opener *opener, int place, size_t *length);

enum { OPENER_LOG_MODE = 0640 };

#endif
