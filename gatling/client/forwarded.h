/* forwarded.h - the client of a request, as the proxies on the way name it: X-Forwarded-For, or Forwarded (RFC 7239).
 * Anybody can send these fields, so only what trusted proxies have added is believed, which is at the end. */
#ifndef GATLING_CLIENT_FORWARDED_H
#define GATLING_CLIENT_FORWARDED_H

#include "gatling/base/peer.h"
#include "gatling/http/request.h"

enum { FORWARDED_HOPS_MAX = 16 }; /* addresses that are examined; the last one counts as the client */

/* The field that a proxy writes. It passes the other one on as the client has sent it. */
enum forwarding { FORWARDING_NONE, FORWARDING_X_FORWARDED_FOR, FORWARDING_FORWARDED };

/* The proxies that are trusted with each field. */
struct trusted_proxies {
	struct peer_nets x_forwarded_for, forwarded;
};

/* Returns the field in which a proxy is trusted; FORWARDING_NONE: it is not trusted. */
static inline enum forwarding forwarding_of(const struct trusted_proxies *trusted, const struct peer *peer) {
	if (peer_is_in(peer, &trusted->x_forwarded_for)) return FORWARDING_X_FORWARDED_FOR;
	return peer_is_in(peer, &trusted->forwarded) ? FORWARDING_FORWARDED : FORWARDING_NONE;
}

/* Finds the client of a request that a trusted proxy has passed on: the first address, from the end of the list, that
 * is not a proxy trusted with this field, or else the last one examined. An element that cannot be parsed ends the
 * search. Returns false if there is no address. */
bool forwarded_client(const struct trusted_proxies *trusted, enum forwarding by, const struct request *request,
					  struct peer *client);

/* Returns whether a trusted proxy says that the client's request came to it over https: X-Forwarded-Proto, or "proto"
 * of the last element of Forwarded. */
bool forwarded_over_https(enum forwarding by, const struct request *request);

#endif
