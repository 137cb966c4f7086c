/* limits.h - limits of requests and connections, for each client address and for all clients together, in all workers.
 * What is not limited is not counted. Clients on unix sockets are proxies: their addresses are unknown, and not
 * limited. */
#ifndef GATLING_CLIENT_LIMITS_H
#define GATLING_CLIENT_LIMITS_H

#include "gatling/client/address_table.h"

enum {
	LIMITS_ADDRESSES = 1 << 20, /* addresses that are counted: 24 MB, which become resident as they come */
	LIMITS_RATED = 1 << 18,     /* addresses that are counted for rates of paths: 6 MB, likewise */
	LIMITS_COUNT_MAX = 1000000  /* connections or requests under way */
};

/* The limits; 0: none. */
struct limits_options {
	int address_connections;                /* connections of an address at once */
	int address_requests;                   /* requests of an address under way at once */
	struct address_rate address_rate, rate; /* of requests: of an address, and of all; burst 0: no limit */
};

struct limits {
	struct limits_options options;
	struct address_table table;
	struct address_entry all[1][ADDRESS_WAYS]; /* a table for all clients together */
};

/* Initializes *limits; table.set is NULL if there is no limit. Returns 0, or -1 without memory. */
int limits_open(struct limits *limits, const struct limits_options *options);

void limits_close(struct limits *limits);

/* For the following functions limits may be NULL, which means that there are none. */

/* Counts one more connection of a client. Returns false, and does not count it, if the client has too many. */
bool limits_take_connection(struct limits *limits, const struct peer *peer);
void limits_return_connection(struct limits *limits, const struct peer *peer);

/* Takes a token of a rate that the owner of a site has for some paths. rate_of: which one; all of them share a table of
 * LIMITS_RATED entries, in all workers. Returns false if the client has none left. site: the path of its directory,
 * for a report. */
bool limits_take_of_rate(const struct peer *peer, uint64_t rate_of, struct address_rate rate, int64_t now_ns,
						 struct slice site);

/* Counts a request of a client. Returns 0, and then it has to be returned after it has been answered; or the status to
 * refuse it with: 429 (RFC 6585, section 4), or 503 if it exceeds the limit of all clients. now_ns is of the monotonic
 * clock. */
int limits_take_request(struct limits *limits, const struct peer *peer, int64_t now_ns);
void limits_return_requests(struct limits *limits, const struct peer *peer, unsigned count);

#endif
