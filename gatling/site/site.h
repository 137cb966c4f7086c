/* site.h - virtual hosts: which directory below the root a Host is served from, and what the files in it say about how:
 * _headers, _redirects and .htaccess_global. */
#ifndef GATLING_SITE_SITE_H
#define GATLING_SITE_SITE_H

#include <stdint.h>

#include "gatling/http/host.h"
#include "gatling/site/basic_auth.h"
#include "gatling/site/rules/header_rules.h"
#include "gatling/site/rules/redirect_rules.h"

enum {
	SITES_MAX = 256,               /* hosts whose directory is remembered */
	SITE_CHECK_MS = 1000,          /* for so long, as what its files say */
	SITE_TOLD_MAX = 16,            /* lines of a file that are left out, and said to be each */
	SITE_PREFIX_MAX = HOST_MAX + 8 /* bytes of "host:port/" */
};

enum vhosts {
	VHOSTS_TRY, /* a directory for the host, else the root itself */
	VHOSTS_ONLY,
	VHOSTS_OFF
};

struct site {
	struct slice prefix;          /* path of its directory with trailing slash, "" for the root */
	struct header_rules *headers; /* NULL: none, as the others */
	struct redirect_rules *redirects;
	struct realm *realm; /* its own */
	bool holds_sites;    /* in its directory are those of others */
	struct realm *outer; /* the root's, where that is a site, too, in which this one can be seen */
};

struct sites;

/* NULL: ENOMEM. The directories are those of the docroot; both have to outlive this. */
struct sites *sites_new(const struct docroot *docroot, struct basic_auth *auth, enum vhosts vhosts);
void sites_free(struct sites *sites);

/* Finds the first that exists of HOST:PORT/, HOST/, default/ and, unless only virtual hosts are served, the root.
 * host is absent or host_valid(); a port in it does not count, port is the one that the connection came in on. NULL
 * with errno: ENOENT: there is none; else it could not be seen just now. The site is good until the next call. */
const struct site *sites_find(struct sites *sites, struct slice host, unsigned port, int64_t now_ms);

/* How often fields that an owner wants have changed. */
unsigned sites_changes(const struct sites *sites);

/* Whether a path below the directory of the site (decoded, without leading slash) is one of its own files that are not
 * served, or of a site that lies in it. */
bool site_hides(const struct site *site, struct slice path);

/* Says once that _headers gives responses more than HEADER_OCTETS_MAX, with that line of it as the last. Names no path:
 * of those, clients have as many as they like. */
void site_complain(const struct site *site, unsigned line);

#endif
