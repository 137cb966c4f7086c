/* site.h - virtual hosts: which directory below the root a Host is served from. */
#ifndef GATLING_SITE_H
#define GATLING_SITE_H

#include <stdint.h>

#include "gatling/cache.h"
#include "gatling/host.h"
#include "gatling/options.h"

enum {
	SITES_MAX = 256,               /* hosts whose directory is remembered */
	SITE_CHECK_MS = 1000,          /* for so long */
	SITE_PREFIX_MAX = HOST_MAX + 8 /* bytes of "host:port/" */
};

struct sites;

/* NULL: ENOMEM. The directories are those below the root of the cache, which has to outlive this. */
struct sites *sites_new(const struct cache *cache, enum vhosts vhosts);
void sites_free(struct sites *sites);

/* Finds the first that exists of HOST:PORT/, HOST/, default/ and, unless only virtual hosts are served, the root.
 * Writes its path with trailing slash ("" for the root) to prefix (SITE_PREFIX_MAX bytes) and its length to *length.
 * host is absent or host_valid(); a port in it does not count, port is the one that the connection came in on. false:
 * there is none. */
bool sites_find(struct sites *sites, struct slice host, unsigned port, int64_t now_ms, char *prefix, size_t *length);

#endif
