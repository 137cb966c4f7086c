/* hosts.h - which directories below the root are the sites of hosts. */
#ifndef GATLING_SITE_HOSTS_H
#define GATLING_SITE_HOSTS_H

#include "gatling/files/docroot.h"

enum {
	HOSTS_MAX = 65536, /* directories that are found */
	HOSTS_NAMED = 5,   /* in the line at the start */
	HOSTS_COLUMNS = 80 /* of a terminal, for the lines about them */
};

enum vhosts {
	VHOSTS_TRY, /* the directory of the host if there is one, else the root */
	VHOSTS_ONLY,
	VHOSTS_OFF
};

/* Returns whether a directory of that name is the site of a host: the name is one that a request can have, in lower
 * case, with or without a port. Unless only virtual hosts are served, the owner may not have meant it, and clients
 * choose: then it needs a dot or a colon, or is localhost. */
bool host_has_directory(enum vhosts vhosts, struct slice name);

struct hosts {
	char **name;
	unsigned count;
};

/* Finds the directories of hosts, in alphabetical order; to be freed with hosts_free(), in either case. Returns 0 or an
 * errno. */
int hosts_find(struct hosts *hosts, const struct docroot *docroot, enum vhosts vhosts);
void hosts_free(struct hosts *hosts);

/* Writes the first HOSTS_NAMED of them, or as many as fit into a line behind that column, and how many others there
 * are. Returns the text, to be freed with free(), or NULL if there are none or no memory. */
char *hosts_summary(const struct hosts *hosts, size_t column);

/* Prints all of them, in lines that begin with the prefix or are indented. */
void hosts_print(const struct hosts *hosts, const char *prefix);

/* Reports if only virtual hosts are served and none has a directory; or if the root is served, too, and default/ looks
 * like a site, which it is only with -v. */
void hosts_report(const struct docroot *docroot, enum vhosts vhosts);

#endif
