/* forwarded.h - the client of a request, as the proxies on the way name it: X-Forwarded-For, or Forwarded (RFC 7239).
 * Anybody can send these fields. Only what a proxy of the owner has added is believed, and that comes last. */
#ifndef GATLING_CLIENT_FORWARDED_H
#define GATLING_CLIENT_FORWARDED_H

#include "gatling/base/peer.h"
#include "gatling/http/request.h"

enum { FORWARDED_HOPS_MAX = 16 }; /* proxies that are looked at; the one before them counts as the client */

/* Which field a proxy writes. It passes the other one on as a client has sent it. */
enum forwarding { FORWARDING_NONE, FORWARDING_X_FORWARDED_FOR, FORWARDING_FORWARDED };

/* Proxies whose field is believed. */
struct trusted_proxies {
	struct peer_nets x_forwarded_for, forwarded;
};

/* Returns which field of that proxy is believed; FORWARDING_NONE: it is not trusted. */
static inline enum forwarding forwarding_of(const struct trusted_proxies *trusted, const struct peer *peer) {
	if (peer_is_in(peer, &trusted->x_forwarded_for)) return FORWARDING_X_FORWARDED_FOR;
	return peer_is_in(peer, &trusted->forwarded) ? FORWARDING_FORWARDED : FORWARDING_NONE;
}

/* Finds the client of a request that a trusted proxy has passed on: from the end of the list, the first address that
 * is not one of a proxy that is trusted with this field, or the last one that can be understood. Returns false if there
 * is none. */
bool forwarded_client(const struct trusted_proxies *trusted, enum forwarding by, const struct request *request,
					  struct peer *client);

#endif
