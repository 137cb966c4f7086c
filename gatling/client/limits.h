/* limits.h - how much a client address may ask for, and all clients together, of all workers. What is not limited is
 * not counted. Clients on unix sockets are proxies: their addresses are not known, and not limited. */
#ifndef GATLING_CLIENT_LIMITS_H
#define GATLING_CLIENT_LIMITS_H

#include "gatling/client/address_table.h"

enum {
	LIMITS_ADDRESSES = 1 << 20, /* for which something is counted: 24 MB, taken as addresses come */
	LIMITS_RATE_MAX = 1000000,  /* requests a second, and a burst */
	LIMITS_COUNT_MAX = 1000000  /* connections or requests under way */
};

/* 0: no limit. */
struct limits_options {
	unsigned address_connections;           /* open at once, of an address */
	unsigned address_requests;              /* under way at once, of an address */
	struct address_rate address_rate, rate; /* requests of an address, and of all; burst 0: no limit */
};

struct limits {
	struct limits_options options;
	struct address_table table;
};

/* Prepares *limits, whose table.set is NULL if there is no limit. Returns 0, or -1: ENOMEM. */
int limits_open(struct limits *limits, const struct limits_options *options);

void limits_close(struct limits *limits);

/* All of these take NULL for limits: there are none. */

/* Counts one more connection of a client. Returns whether it may have it. */
bool limits_take_connection(struct limits *limits, const struct peer *peer);
void limits_return_connection(struct limits *limits, const struct peer *peer);

/* Counts a request of a client. Returns 0, and then it has to be returned when it has been answered; or the status to
 * refuse it with: 429 (RFC 6585, section 4), or 503 if the limit is that of all clients. now_ns is of the monotonic
 * clock. */
int limits_take_request(struct limits *limits, const struct peer *peer, int64_t now_ns);
void limits_return_requests(struct limits *limits, const struct peer *peer, unsigned count);

#endif
