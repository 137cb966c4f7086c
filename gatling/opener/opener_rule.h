/* opener_rule.h - what an opener may open, and its limits. */
#ifndef GATLING_OPENER_OPENER_RULE_H
#define GATLING_OPENER_OPENER_RULE_H

#include <stdbool.h>

enum {
	OPENER_PLACES = 160,            /* places of an opener */
	OPENER_NAME = 512,              /* bytes of a name, with its NUL */
	OPENER_LIST = 16 * 1024 * 1024, /* bytes of the names in a directory */
	OPENER_WAIT_MS = 10000,         /* for an answer: a disk may have to start first */
	OPENER_LOG_MODE = 0640          /* of a log file that is created */
};

/* What may be opened in a place. */
enum opener_rule {
	OPENER_NOTHING,
	OPENER_FILE,    /* the file of that name, for reading */
	OPENER_PEMS,    /* NAME.pem in a directory, for reading; these names may be listed */
	OPENER_PAIRS,   /* NAME/fullchain.pem and NAME/privkey.pem, for reading; each NAME may be listed */
	OPENER_SOCKETS, /* unix sockets in a directory, to connect to */
	OPENER_SOCKET,  /* the unix socket of that name, to connect to */
	OPENER_LOG      /* the file of that name, which may not exist yet, for appending */
};

/* Returns whether the names in a place with this rule may be listed. */
bool opener_of_directory(enum opener_rule rule);

/* Returns whether the rule is one for sockets. */
bool opener_of_sockets(enum opener_rule rule);

/* Returns the name, within path, of a file in directory, which may end in '/'; NULL: path is not in it, or its name
 * begins with a dot. */
const char *opener_name_in(const char *directory, const char *path);

#endif
