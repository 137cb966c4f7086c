/* site.h - virtual hosts: the directory below the root from which a Host is served, and the files in it that say how:
 * _headers, _redirects and .htaccess_global. */
#ifndef GATLING_SITE_SITE_H
#define GATLING_SITE_SITE_H

#include <stdint.h>

#include "gatling/files/fetch.h"
#include "gatling/files/names.h"
#include "gatling/http/host.h"
#include "gatling/site/basic_auth.h"
#include "gatling/site/rules/header_rules.h"
#include "gatling/site/rules/redirect_rules.h"

enum {
	SITES_MAX = 256,               /* hosts whose directory is remembered */
	SITE_CHECK_MS = 1000,          /* after which directories and files are looked at again */
	SITE_STALE_MS = 10000,         /* after which nothing is answered without that */
	SITE_TOLD_MAX = 16,            /* malformed lines of a file that are reported */
	SITE_PREFIX_MAX = HOST_MAX + 8 /* bytes of "host:port/" */
};

enum vhosts {
	VHOSTS_TRY, /* a directory for the host, else the root itself */
	VHOSTS_ONLY,
	VHOSTS_OFF
};

struct site {
	struct slice prefix;          /* path of its directory with trailing slash, "" for the root */
	bool holds_sites;             /* its directory contains those of others */
	int64_t until_ms;             /* the Host leads to it until then, and the next members are as they are */
	struct header_rules *headers; /* NULL: none, like the next two */
	struct redirect_rules *redirects;
	bool unknown;                        /* there may be some of both that cannot be read for now */
	bool unknown_redirects;              /* of these */
	struct realm *realm[REALMS_OF_PATH]; /* that of the root, if that is a site that contains this one; its own */
};

struct sites;

/* Returns NULL: ENOMEM. The directories are those of the docroot, which must outlive the sites, like all that is
 * passed. */
struct sites *sites_new(const struct docroot *docroot, struct names *names, struct basic_auth *auth,
						struct fetcher *fetcher, enum vhosts vhosts, const struct upstreams_allowed *upstreams);
void sites_free(struct sites *sites);

/* Returns the first that exists of HOST:PORT/, HOST/, default/ and, unless only virtual hosts are served, the root.
 * host is absent or host_valid(); a port in it is ignored: port is that of the listening socket. The site lasts until
 * the next call. NULL with errno; ENOENT: there is none; else a directory could not be read for a temporary reason.
 *
 * A site is looked at again after SITE_CHECK_MS, by a thread if it is not in memory and the file system is not one of
 * this machine (names_elsewhere()): until that has read it, but not longer than SITE_STALE_MS, the site is as it was.
 * NULL with *job: it is new, or was looked at too long ago, and is to be asked for again after that job; fetched: see
 * fetch_waited(). With NULL for job a call waits for the file system. */
const struct site *sites_find(struct sites *sites, struct slice host, unsigned port, int64_t now_ms,
							  const uint64_t *fetched, struct job **job);

/* Returns EACCES if a file of a site is never sent, since a rule has it run: one of that site, of the site that
 * contains it, or of the one in it from which the file would be served by another Host; EAGAIN if that is not known for
 * now; or 0. path: in the site, decoded, with a slash in front. */
int sites_protect(struct sites *sites, const struct site *site, struct slice path, int64_t now_ms);

/* Returns how often the fields of owners have changed. */
unsigned sites_changes(const struct sites *sites);

/* Returns whether a path in the site (decoded, empty or with a slash at its end only) is that of its directory, or of
 * that of a site in it. */
bool site_begins_at(const struct site *site, struct slice path);

/* Returns whether a path in the site (decoded, without leading slash) is that of _headers or _redirects, of the site or
 * of one in its directory: these are not served. */
bool site_hides(const struct site *site, struct slice path);

/* Reports once that _headers adds more than HEADER_OCTETS_MAX to a response, of which that line is the last. It names
 * no path, since clients could make up any number of them. */
void site_complain(const struct site *site, unsigned line);

#endif
