/* host.h - the authority in a request: uri-host [ ":" port ] (RFC 9110, section 7.2). */
#ifndef GATLING_HTTP_HOST_H
#define GATLING_HTTP_HOST_H

#include "gatling/base/slice.h"

enum {
	HOST_MAX = 255,              /* bytes of a name without its port (RFC 1035, section 2.3.4) */
	AUTHORITY_MAX = HOST_MAX + 6 /* with its port */
};

/* Returns the length of "http://" or "https://", in upper or lower case, at the start of url, or 0 if it has
 * neither. */
size_t host_scheme_length(struct slice url);

/* Returns whether authority is a name, an IPv4 address or an IPv6 address in brackets (RFC 3986, section 3.2.2, without
 * zones and later versions), with or without a decimal port up to 65535. Such an authority has no '/', no control
 * character and no leading dot: it is safe as a file name. */
bool host_valid(struct slice authority);

/* Writes the name of a valid authority to name (HOST_MAX bytes), in lower case, without port and trailing dot. Returns
 * its length. */
size_t host_name(struct slice authority, char *name);

/* Returns whether an authority is valid, and written as host_name() writes it, perhaps with a port, which has no
 * leading zeros. */
bool host_normal(struct slice authority);

#endif
