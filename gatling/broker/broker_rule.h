/* broker_rule.h - what a broker may open, and its limits. */
#ifndef GATLING_BROKER_BROKER_RULE_H
#define GATLING_BROKER_BROKER_RULE_H

#include <stdbool.h>

enum {
	BROKER_PLACES = 160,            /* places of a broker */
	BROKER_NAME = 512,              /* bytes of a name, with its NUL */
	BROKER_LIST = 16 * 1024 * 1024, /* bytes of the names in a directory */
	BROKER_FILE_MAX = 1024 * 1024,  /* bytes of a file that is read */
	BROKER_WAIT_MS = 10000,         /* for an answer: a disk may have to start first */
	BROKER_SHORT_WAIT_MS = 1000,    /* the same, while the server serves; but not for a log */
	BROKER_LOOK = 256,              /* names whose files are looked at in one request, */
	BROKER_LOOK_MS = 100,           /* or fewer, if that takes so long */
	BROKER_PAIR = 2,                /* files of a name in BROKER_PAIRS */
	BROKER_LOG_MODE = 0640          /* of a log file that is created */
};

/* What may be opened in a place. */
enum broker_rule {
	BROKER_NOTHING,
	BROKER_FILE,    /* the file of that name, for reading */
	BROKER_PEMS,    /* NAME.pem in a directory, for reading; these names may be listed */
	BROKER_PAIRS,   /* NAME/fullchain.pem and NAME/privkey.pem, for reading; each NAME may be listed */
	BROKER_SOCKETS, /* unix sockets in a directory, to connect to */
	BROKER_SOCKET,  /* the unix socket of that name, to connect to */
	BROKER_LOG,     /* the file of that name, which may not exist yet, for appending */
	BROKER_LOGS     /* NAME.log in a directory, likewise */
};

/* Returns whether the names in a place with this rule may be listed. */
bool broker_of_directory(enum broker_rule rule);

/* Returns whether the rule is one for logs. */
bool broker_of_logs(enum broker_rule rule);

/* Returns whether the rule is one for sockets. */
bool broker_of_sockets(enum broker_rule rule);

/* Returns the name, within path, of a file in directory, which may end in '/'; NULL: path is not in it, or its name
 * begins with a dot. */
const char *broker_name_in(const char *directory, const char *path);

#endif
