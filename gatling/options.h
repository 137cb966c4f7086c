/* options.h - the command line. */
#ifndef GATLING_OPTIONS_H
#define GATLING_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/conn/budget.h"
#include "gatling/log/access.h"
#include "gatling/site/content.h"
#include "gatling/tls/certificate_files.h"

enum { ADDRESSES_MAX = 64, WORKERS_MAX = 256, TIMEOUT_MAX_S = 24 * 60 * 60 };

struct options {
	const char *root;
	int port, tls_port;
	const char *address[ADDRESSES_MAX]; /* as given to -i */
	unsigned addresses;                 /* 0: all, IPv6 and IPv4 */
	const char *user;                   /* NULL: stay who we are */
	int workers;
	struct conn_options conn;
	struct content_options site;
	const char *mime; /* file of media types; NULL: none */
	enum log_format log;
	const char *log_file; /* NULL: stdout */
	struct certificate_options tls;
	bool strict_sni;     /* refuse the names of servers that no certificate is for */
	bool https_redirect; /* from the plain ports */
	int hsts_s;          /* for so long browsers shall use HTTPS alone; 0: not said */
	bool defer_accept;   /* of TCP connections, until their request is there */
	bool check;          /* the files, instead of serving them */
};

/* Fills *options from the command line. Returns normally when there is something to serve; prints what --help and
 * --version ask for and exits 0; prints one line about what is wrong and exits 2. The strings are argv's. */
void options_parse(struct options *options, int argc, char **argv);

#endif
