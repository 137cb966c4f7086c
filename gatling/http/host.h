/* host.h - the authority that a request asks for: uri-host [ ":" port ] (RFC 9110, section 7.2). */
#ifndef GATLING_HTTP_HOST_H
#define GATLING_HTTP_HOST_H

#include "gatling/base/slice.h"

enum {
	HOST_MAX = 255,              /* bytes of a name without its port (RFC 1035, section 2.3.4) */
	AUTHORITY_MAX = HOST_MAX + 6 /* and with it */
};

/* Whether it is a name, an IPv4 address or an IPv6 address in brackets (RFC 3986, section 3.2.2; no zone, no address of
 * a later version), with or without a decimal port up to 65535. What passes holds no '/', no control character and no
 * leading dot, so it is safe as a file name. */
bool host_valid(struct slice authority);

/* Writes the name without port and without a trailing dot, in lower case, to name (HOST_MAX bytes); its length.
 * For a valid authority. */
size_t host_name(struct slice authority, char *name);

#endif
