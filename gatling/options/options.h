/* options.h - what the command line asks for. */
#ifndef GATLING_OPTIONS_OPTIONS_H
#define GATLING_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/acme/acme_options.h"
#include "gatling/base/notice.h"
#include "gatling/client/limit_value.h"
#include "gatling/client/limits.h"
#include "gatling/conn/conn_options.h"
#include "gatling/log/access.h"
#include "gatling/site/site_context.h"
#include "gatling/tls/certificate_files.h"
#include "gatling/upstream/upstreams.h"

/* The default depends on --vhosts. */
enum listings { LISTINGS_DEFAULT, LISTINGS_ON, LISTINGS_OFF };

enum { ADDRESSES_MAX = 64, WORKERS_MAX = 256, TIMEOUT_MAX_S = LIMIT_SECONDS_MAX };

struct options {
	const char *root;
	int port, tls_port;
	const char *address[ADDRESSES_MAX]; /* as given to -i */
	unsigned addresses;                 /* 0: all, IPv6 and IPv4 */
	const char *user;                   /* NULL: do not change the user */
	int workers;
	int connections; /* of all workers together; 0: as many as descriptors allow */
	enum listings listings;
	struct conn_options conn;
	struct limits_options limits;
	struct site_options site;
	const char *upstream_ca; /* the file with the authorities of https upstreams; NULL: those of the system */
	bool upstream_gzip;      /* compress the responses of upstreams */
	const char *mime;        /* file of media types; NULL: none */
	enum log_format log;
	const char *log_file;     /* NULL: stdout */
	const char *dictionaries; /* a directory of older versions of the root; or NULL */
	const char *log_dir;      /* a directory with a log for each site, instead; or NULL */
	const char *error_log;    /* file for the lines of base/notice.h; NULL: stderr */
	enum notice_level error_level;
	struct certificate_options tls;
	struct acme_options acme;
	bool certificates;     /* show the certificates in --acme-dir instead of serving */
	bool strict_sni;       /* refuse server names that no certificate covers */
	bool https_redirect;   /* redirect requests to the plain ports */
	int hsts_s;            /* tell browsers to use only HTTPS for this time; 0: do not */
	bool defer_accept;     /* accept TCP connections only when their request has arrived */
	bool sandbox;          /* limit files and system calls */
	const char *take_over; /* path of a unix socket, see take_over.h; NULL: none */
	const char *status;    /* address of the status page, see status/address.h; NULL: none */
	const char *top;       /* address of a status page to show instead of serving; NULL: none */
	int drain_delay_s;     /* how long to go on accepting after SIGTERM */
	bool drain_whole;      /* do so all this time, even without connections: balancers have to find out */
	const char *explain;   /* a URL whose answer is to be explained instead; NULL: none */
	bool check;            /* check the files instead of serving them */
};

#endif
