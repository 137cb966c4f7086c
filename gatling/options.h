/* options.h - the command line. */
#ifndef GATLING_OPTIONS_H
#define GATLING_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { ADDRESSES_MAX = 64, CERTS_MAX = 64, WORKERS_MAX = 256, TIMEOUT_MAX_S = 24 * 60 * 60 };

enum { FALLBACK_MAX = 1024 }; /* bytes of its URL */

enum vhosts {
	VHOSTS_TRY, /* a directory for the host, else the root itself */
	VHOSTS_ONLY,
	VHOSTS_OFF
};

enum https {
	HTTPS_TRY, /* if there is a certificate, and the port is free */
	HTTPS_ON,
	HTTPS_OFF
};

enum log_format { LOG_COMMON, LOG_COMBINED, LOG_JSON, LOG_OFF };

struct options {
	const char *root;
	int port, tls_port;
	const char *address[ADDRESSES_MAX]; /* as given to -i */
	unsigned addresses;                 /* 0: all, IPv6 and IPv4 */
	const char *user;                   /* NULL: stay who we are */
	int workers;
	int timeout_s, head_timeout_s, keepalive_timeout_s; /* 0: never */
	bool listings;
	bool cache_control;     /* sent without being asked */
	uint64_t client_memory; /* bytes that a worker keeps for its clients, see budget.h */
	uint64_t gzip_cache;    /* bytes of what has been compressed, of all workers together */
	const char *fallback;   /* URL of a mirror for what is missing; NULL: none */
	const char *mime;       /* file of media types; NULL: none */
	enum vhosts vhosts;
	enum log_format log;
	const char *log_file; /* NULL: stdout */
	bool symlinks_inside;
	enum https https;
	const char *cert[CERTS_MAX], *key[CERTS_MAX]; /* a key of NULL: it is in the same file */
	unsigned certs;
	const char *cert_dir, *client_ca; /* NULL: none */
	bool strict_sni;                  /* refuse the names of servers that no certificate is for */
	bool https_redirect;              /* from the plain ports */
	int hsts_s;                       /* for so long browsers shall use HTTPS alone; 0: not said */
	bool defer_accept;                /* of TCP connections, until their request is there */
	bool check;                       /* the files, instead of serving them */
};

/* Fills *options from the command line. Returns normally when there is something to serve; prints what --help and
 * --version ask for and exits 0; prints one line about what is wrong and exits 2. The strings are argv's. */
void options_parse(struct options *options, int argc, char **argv);

#endif
