/* upstream_address.h - where requests are passed on to: the upstreams that a rule of _redirects names, and those that
 * the owner allows. A user who may write the files of a site must not reach every host of the network by them. */
#ifndef GATLING_UPSTREAM_UPSTREAM_ADDRESS_H
#define GATLING_UPSTREAM_UPSTREAM_ADDRESS_H

#include "gatling/base/peer.h"

enum {
	UPSTREAM_ADDRESSES_MAX = 16, /* of one rule */
	UPSTREAM_ALLOWED_MAX = 64,   /* --upstream */
	UPSTREAM_PATH_MAX = 108,     /* bytes of the path of a unix socket, with its NUL (unix(7)) */
	UPSTREAM_TEXT_MAX = UPSTREAM_PATH_MAX + 16
};

enum upstream_protocol {
	UPSTREAM_HTTP, /* HTTP/1.1 */
	UPSTREAM_FCGI, /* FastCGI */
	UPSTREAM_SCGI
};

struct upstream_address {
	struct peer address;
	uint16_t port;
	char path[UPSTREAM_PATH_MAX]; /* of a unix socket; empty: it is none */
};

/* Where a rule passes requests on to: any of these addresses. */
struct upstream_target {
	enum upstream_protocol protocol;
	unsigned references, count;
	struct upstream_address at[];
};

/* What --upstream allows. */
struct upstreams_allowed {
	unsigned count;
	struct {
		const char *directory; /* of unix sockets; NULL: the others */
		struct peer_net net;
		uint16_t port; /* 0: any */
	} at[UPSTREAM_ALLOWED_MAX];
};

/* Parses a URL: "http://", "fcgi://" or "scgi://" (the scheme), then addresses with commas between them, each
 *     ADDRESS[:PORT]  of IPv4, of IPv6 in brackets, or "localhost" (127.0.0.1); without a port 80, with fcgi 9000, or
 *     unix:PATH       of a socket, absolute, without ':' and ',' in names, or a '.' that begins the last one,
 * and, with a ':' between them if the last address is a path, what is left in *rest. Returns NULL, and *target with one
 * reference; or what is wrong; or upstream_no_memory. */
const char *upstream_target_parse(struct slice scheme, struct slice *rest, struct upstream_target **target);
extern const char upstream_no_memory[];

struct upstream_target *upstream_target_retain(const struct upstream_target *target);
void upstream_target_release(struct upstream_target *target); /* NULL is allowed */

/* Adds a directory of unix sockets, which begins with '/' and has to last; or ADDRESS[/BITS][:PORT], where IPv6 is in
 * brackets: [ADDRESS/BITS]. Returns false if it is neither, or one too many. */
bool upstreams_allow(struct upstreams_allowed *allowed, const char *text);

/* Returns whether any address of TCP is allowed. */
bool upstreams_allow_tcp(const struct upstreams_allowed *allowed);

/* Returns the first address of the target that is not allowed; NULL: all are. */
const struct upstream_address *upstreams_refused(const struct upstreams_allowed *allowed,
												 const struct upstream_target *target);

/* Writes ADDRESS:PORT or PATH to out (UPSTREAM_TEXT_MAX bytes), with a NUL. */
void upstream_format(char *out, const struct upstream_address *address);

/* Writes what upstreams_allow() takes for it. */
void upstream_format_allowed(char *out, const struct upstream_address *address);

#endif
