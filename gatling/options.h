/* options.h - the command line. */
#ifndef GATLING_OPTIONS_H
#define GATLING_OPTIONS_H

#include <stdbool.h>

enum { ADDRESSES_MAX = 64, WORKERS_MAX = 256, TIMEOUT_MAX_S = 24 * 60 * 60 };

enum vhosts {
	VHOSTS_TRY, /* a directory for the host, else the root itself */
	VHOSTS_ONLY,
	VHOSTS_OFF
};

struct options {
	const char *root;
	int port;
	const char *address[ADDRESSES_MAX]; /* as given to -i */
	unsigned addresses;                 /* 0: all, IPv6 and IPv4 */
	const char *user;                   /* NULL: stay who we are */
	int workers;
	int timeout_s; /* 0: never */
	bool listings;
	enum vhosts vhosts;
	bool log;
	bool symlinks_inside;
	bool defer_accept; /* of TCP connections, until their request is there */
};

/* Fills *options from the command line. Returns normally when there is something to serve; prints what --help and
 * --version ask for and exits 0; prints one line about what is wrong and exits 2. The strings are argv's. */
void options_parse(struct options *options, int argc, char **argv);

#endif
