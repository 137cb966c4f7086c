/* resolver.h - a process that stays outside the document root, and looks up the addresses of the hosts that --upstream
 * names. The server has no files and no datagrams to do so. Its workers read the addresses from memory that both
 * share.
 *
 * The C library does not say how long an address is valid, so a host that requests go to is looked up again every
 * RESOLVE_MS, and others every RESOLVE_UNUSED_MS. If that fails for a reason that may pass, such as a name server that
 * does not answer, the last addresses stay in use. Each host has a thread, so that none waits for another.
 *
 * That process reads what strangers send, and is hardly confined: the server believes nothing of what is in that memory
 * but that it may be an address. */
#ifndef GATLING_UPSTREAM_RESOLVER_H
#define GATLING_UPSTREAM_RESOLVER_H

#include "gatling/upstream/upstream_address.h"

enum {
	RESOLVED_MAX = 16, /* addresses of a host; further ones are left out */
	RESOLVE_MS = 5000,
	RESOLVE_UNUSED_MS = 30 * 1000,
	RESOLVE_FIRST_MS = 2000 /* for which a server that starts waits for the first addresses */
};

struct account; /* sandbox/account.h */
struct resolver;

/* Starts the process if a host has a name; else *resolver becomes NULL. sandbox: limit its files. user: whose rights it
 * has; NULL: those of this process. No other thread may run yet. Returns 0, or -1 with errno. */
int resolver_start(const struct upstreams_allowed *allowed, bool sandbox, const struct account *user,
				   struct resolver **resolver);

/* Waits until each host was looked up once, but no longer than RESOLVE_FIRST_MS. NULL is allowed. */
void resolver_wait(const struct resolver *resolver);

/* Ends the process. NULL is allowed. */
void resolver_stop(struct resolver *resolver);

/* Writes the addresses of a host to `at` (RESOLVED_MAX). Returns how many there are; if none, *why becomes the reason.
 * Any thread may call it. */
unsigned resolver_find(struct resolver *resolver, const char *host, struct peer *at, const char **why);

#endif
