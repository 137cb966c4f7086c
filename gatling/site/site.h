/* site.h - virtual hosts: finds the directory below the root from which a Host is served, and reads the files in it
 * that configure it: _headers, _redirects, _limits and .htaccess_global. */
#ifndef GATLING_SITE_SITE_H
#define GATLING_SITE_SITE_H

#include <stdint.h>

#include "gatling/files/names.h"
#include "gatling/files/site_file.h"
#include "gatling/http/host.h"
#include "gatling/site/access/basic_auth.h"
#include "gatling/site/hosts.h"
#include "gatling/site/rules/header_rules.h"
#include "gatling/site/rules/limit_rules.h"
#include "gatling/site/rules/redirect_rules.h"

enum {
	SITES_MAX = 256,               /* hosts whose directory is remembered */
	SITE_CHECK_MS = 1000,          /* after which directories and files are checked again */
	SITE_STALE_MS = 10000,         /* after which requests wait for that check */
	SITE_TOLD_MAX = 16,            /* malformed lines of a file that are reported */
	SITE_PREFIX_MAX = HOST_MAX + 8 /* bytes of "host:port/" */
};

struct site {
	struct slice prefix;              /* path of its directory with trailing slash, "" for the root */
	bool holds_sites;                 /* its directory contains those of other sites */
	int64_t until_ms;                 /* until then the Host leads to it, and the next members are valid */
	struct header_rules *headers;     /* NULL: none, or not known */
	struct redirect_rules *redirects; /* likewise */
	struct limit_rules *limits;       /* likewise; NULL also if others may have written them, see trust.h */
	bool known;                       /* no file of rules is missing here only since it cannot be read for now */
	bool redirects_known;             /* there is no _redirects, or it has been read */
	/* of the whole site, and of the root if that contains it; denied if _redirects or _limits was never readable */
	struct guard guard;
};

struct sites;

/* Returns the sites of a tree, or NULL without memory. All arguments must outlive them. starter: the user who
 * started the server, see trust.h. */
struct sites *sites_new(const struct tree *tree, struct names *names, struct basic_auth *auth, enum vhosts vhosts,
						const struct upstreams_allowed *upstreams, uid_t starter);
void sites_free(struct sites *sites);

/* Returns the site of a host: the first that exists of HOST:PORT/, HOST/ and default/, of those that the name allows
 * (host_has_directory()), and, unless only virtual hosts are served, the root. host is absent or host_valid(); a port
 * in it is ignored: port is that of the listening socket. The site is valid until the next call. Returns NULL with
 * errno: ENOENT if there is none, otherwise a directory could not be read for a temporary reason.
 *
 * A site is checked again after SITE_CHECK_MS. While threads do that (tree.h) it stays as it was, for at most
 * SITE_STALE_MS. Returns NULL with EINPROGRESS if the site is new, or has not been checked for so long. */
const struct site *sites_find(struct sites *sites, struct slice host, unsigned port, int64_t now_ms);

/* Returns whether a file of a site may be sent, since no rule runs it as a script: none of this site, of the site that
 * contains it, or of a directory inside it that may be the site of another Host. path: in the site, decoded, with a
 * leading slash. Returns false with errno: EACCES, or EAGAIN if that cannot be known for now. */
bool sites_may_send(struct sites *sites, const struct site *site, struct slice path, int64_t now_ms);

/* Returns how often a file _headers has changed, whose fields are in the representations that the cache keeps. */
unsigned sites_changes(const struct sites *sites);

/* Returns whether a path in the site (decoded; empty, or with a slash at its end only) is that of its directory, or of
 * the directory of a site inside it. */
bool site_begins_at(const struct site *site, struct slice path);

/* Returns whether a path in the site (decoded, without a leading slash) may be served: it is not that of a file of
 * rules (site_file.h), or of a precompressed copy of one, at the top of the site or, if other sites are inside this
 * one, of any directory at its top, which may become that of a host or be served with -v. */
bool site_shows(const struct site *site, struct slice path);

/* Reports once what a line of a file of rules leads to when it is applied (file: not SITE_PASSWORDS). The text names no
 * path, since clients could make up any number of them. */
void site_complain(const struct site *site, enum site_file file, unsigned line, const char *text);

#endif
