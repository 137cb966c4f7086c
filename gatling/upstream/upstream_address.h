/* upstream_address.h - the upstreams that rules in _redirects name, and those that the owner allows: users who may
 * write the files of a site must not reach every host of the network through it. */
#ifndef GATLING_UPSTREAM_UPSTREAM_ADDRESS_H
#define GATLING_UPSTREAM_UPSTREAM_ADDRESS_H

#include "gatling/base/peer.h"

enum {
	UPSTREAM_ADDRESSES_MAX = 16, /* addresses of one rule */
	UPSTREAM_ALLOWED_MAX = 64,   /* options --upstream */
	UPSTREAM_PATH_MAX = 108,     /* bytes of the path of a unix socket, with its NUL (unix(7)) */
	UPSTREAM_HOST_MAX = 128,     /* bytes of the name of a host, with its NUL */
	UPSTREAM_TEXT_MAX = UPSTREAM_HOST_MAX + 16
};

enum upstream_protocol {
	UPSTREAM_HTTP, /* HTTP/1.1 */
	UPSTREAM_FCGI, /* FastCGI */
	UPSTREAM_SCGI
};

struct upstream_address {
	struct peer address; /* of a host with a name: unspecified (all zero) in a target, or one that was found */
	uint16_t port;
	char path[UPSTREAM_PATH_MAX]; /* of a unix socket; empty: the address is one of TCP */
	char host[UPSTREAM_HOST_MAX]; /* its name, in lower case; empty: it was given as an address */
};

/* The addresses of a rule; a request is passed on to any of them. */
struct upstream_target {
	enum upstream_protocol protocol;
	bool tls; /* https: UPSTREAM_HTTP to one host, with its certificate */
	unsigned references, count;
	struct upstream_address at[];
};

/* What one --upstream allows. */
struct upstream_allowed {
	const char *directory, *path; /* of unix sockets, of one; both NULL: host or net, port and tls */
	struct slice host;            /* a name, or absent */
	struct peer_net net;
	uint16_t port; /* 0: any */
	bool tls;
};

struct upstreams_allowed {
	unsigned count;
	struct upstream_allowed at[UPSTREAM_ALLOWED_MAX];
};

/* Parses a URL: a scheme ("http://", "https://", "fcgi://" or "scgi://"), then addresses separated by commas, each of
 * which is
 *     HOST[:PORT]  IPv4, IPv6 in brackets, "localhost" (127.0.0.1) or another name; the default port is 80, 443 for
 *                  https, or 9000 for fcgi; or
 *     unix:PATH    an absolute path of a socket, without ':' and ',', whose last name does not begin with '.'.
 * *rest becomes the text after them, without the ':' that follows a path. Returns NULL, and *target with one reference;
 * otherwise what is wrong, or upstream_no_memory. */
const char *upstream_target_parse(struct slice scheme, struct slice *rest, struct upstream_target **target);
extern const char upstream_no_memory[];

struct upstream_target *upstream_target_retain(const struct upstream_target *target);
void upstream_target_release(struct upstream_target *target); /* NULL is allowed */

/* Allows the unix sockets in a directory, if text begins with '/'; one of them, if it is unix:PATH; or
 * ADDRESS[/BITS][:PORT], with IPv6 in brackets: [ADDRESS/BITS], or NAME[:PORT]; with https:// in front of it the same
 * for TLS, and nothing else; http:// is allowed there, too, and both have their default port. text must remain valid.
 * Returns false if it is none of these, or there are too many. */
bool upstreams_allow(struct upstreams_allowed *allowed, const char *text);

/* Return whether any host with a name, or TLS, is allowed. */
bool upstreams_allow_names(const struct upstreams_allowed *allowed);
bool upstreams_allow_tls(const struct upstreams_allowed *allowed);

/* Returns whether the address that was found for a host of the target may be used. Whoever has the name of a host may
 * lead it anywhere: so an address of this machine, of its links, or of a service that clouds have for their machines
 * has to be allowed as an address, with this port and for TLS or not. */
bool upstreams_allow_found(const struct upstreams_allowed *allowed, const struct upstream_target *target,
						   const struct upstream_address *host, const struct peer *found);

/* Returns whether any TCP address is allowed. */
bool upstreams_allow_tcp(const struct upstreams_allowed *allowed);

/* Returns the first address of the target that is not allowed, or NULL if all are. */
const struct upstream_address *upstreams_refused(const struct upstreams_allowed *allowed,
												 const struct upstream_target *target);

/* Writes ADDRESS:PORT or PATH to out (UPSTREAM_TEXT_MAX bytes), with a NUL; of a host whose address is not known
 * NAME:PORT. */
void upstream_format(char *out, const struct upstream_address *address);

/* Writes an address of a target as upstreams_allow() takes it to out (UPSTREAM_TEXT_MAX bytes). */
void upstream_format_allowed(char *out, const struct upstream_target *target, const struct upstream_address *address);

/* Writes HOST[:PORT] of an address of a target, as it is in a URL, to out (UPSTREAM_TEXT_MAX bytes): without the port
 * if that is the default one. Of a unix socket it is "localhost". Returns its length. */
size_t upstream_format_authority(char *out, const struct upstream_target *target,
								 const struct upstream_address *address);

#endif
