/* origin.h - which requests the status page answers. Whoever can reach it may see it, but the page of another site in
 * his browser may not: neither under a name of its own that leads to this address (DNS rebinding), nor from outside. */
#ifndef GATLING_STATUS_ORIGIN_H
#define GATLING_STATUS_ORIGIN_H

#include <stdbool.h>

#include "gatling/http/request.h"

enum { STATUS_NAMES_MAX = 256 };

/* The names under which the page answers, besides all addresses and localhost. */
struct status_names {
	bool any; /* it is at a unix socket, which no browser connects to */
	unsigned count;
	struct slice name[STATUS_NAMES_MAX];
};

/* Adds a name, perhaps with a port. It must remain valid. What is no name, such as an address, is left out. */
void status_names_add(struct status_names *names, const char *name);

enum status_permission {
	STATUS_MISDIRECTED, /* its host is not known here (421) */
	STATUS_CROSS_SITE,  /* a page of another site has asked for it (403) */
	STATUS_ADMITTED
};

/* Decides about a request. Without Host, as in HTTP/1.0, it comes from no browser. What a browser says of the page that
 * asks (Sec-Fetch-Site) must be "same-origin" or "none": other ports of a host are the same site, but need not be of
 * the same owner. */
enum status_permission status_permission(const struct status_names *names, const struct request *request);

#endif
