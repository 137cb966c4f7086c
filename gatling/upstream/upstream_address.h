/* upstream_address.h - the addresses that requests are passed on to: which a rule of _redirects names, and which the
 * owner allows. Whoever may write the files of a site must not thereby reach every host of the network. */
#ifndef GATLING_UPSTREAM_UPSTREAM_ADDRESS_H
#define GATLING_UPSTREAM_UPSTREAM_ADDRESS_H

#include "gatling/base/peer.h"

enum {
	UPSTREAM_ADDRESSES_MAX = 16, /* of one rule */
	UPSTREAM_ALLOWED_MAX = 64    /* --upstream */
};

struct upstream_address {
	struct peer address;
	uint16_t port;
};

/* Where a rule passes requests on to: any of these. */
struct upstream_target {
	unsigned count;
	struct upstream_address at[UPSTREAM_ADDRESSES_MAX];
};

/* What --upstream allows. */
struct upstreams_allowed {
	unsigned count;
	struct {
		struct peer_net net;
		uint16_t port; /* 0: any */
	} at[UPSTREAM_ALLOWED_MAX];
};

/* Parses ADDRESS:PORT[,ADDRESS:PORT...], where ADDRESS is of IPv4, of IPv6 in brackets, or "localhost" (127.0.0.1), and
 * ":PORT" may be missing (80). Returns NULL, or what is wrong. */
const char *upstream_target_parse(struct slice authority, struct upstream_target *target);

/* Adds ADDRESS[/BITS][:PORT], where IPv6 is in brackets: [ADDRESS/BITS]. Returns false if it is none, or one too many.
 */
bool upstreams_allow(struct upstreams_allowed *allowed, const char *text);

/* Returns the first address of the target that is not allowed; NULL: all are. */
const struct upstream_address *upstreams_refused(const struct upstreams_allowed *allowed,
												 const struct upstream_target *target);

/* Writes ADDRESS:PORT to out (UPSTREAM_TEXT_MAX bytes), as upstreams_allow() takes it, with a NUL. */
enum { UPSTREAM_TEXT_MAX = PEER_MAX + 16 };
void upstream_format(char *out, const struct upstream_address *address);

#endif
