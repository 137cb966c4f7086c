/* address_table.h - counts for each client address the tokens that it has used and the things that it holds now. An
 * IPv6 /64 counts as one address, since a client usually has all of it (RFC 6177). A table has a fixed size: an address
 * without a place takes that of one that holds nothing and has used least; if all of its set hold something, it gets
 * nothing. Thread-safe, with locks that all tables share. */
#ifndef GATLING_CLIENT_ADDRESS_TABLE_H
#define GATLING_CLIENT_ADDRESS_TABLE_H

#include <stdint.h>

#include "gatling/base/peer.h"

enum { ADDRESS_WAYS = 8 };                 /* entries of a set: an address is in one of them */
#define ADDRESS_NS_PER_MS INT64_C(1000000) /* times here are in nanoseconds */

enum address_held { ADDRESS_CONNECTIONS, ADDRESS_REQUESTS, ADDRESS_HELD };

/* What is counted for an address, in 24 bytes. */
struct address_entry {
	uint64_t network; /* peer_network() */
	int64_t full_ns;  /* when it will have regained all tokens */
	uint32_t held[ADDRESS_HELD];
};

/* A table of sets * ADDRESS_WAYS entries, all zero at first. */
struct address_table {
	struct address_entry (*set)[ADDRESS_WAYS];
	unsigned sets;
};

/* A token bucket: a token comes back every interval_ns, up to `burst` of them. */
struct address_rate {
	int64_t interval_ns;
	int64_t burst;
};

/* Takes a token. Returns false if there is none left, or no place for the address. now_ns is of the monotonic clock. */
bool address_take(struct address_table *table, uint64_t network, struct address_rate rate, int64_t now_ns);

/* Gives a token back. */
void address_give_back(struct address_table *table, uint64_t network, struct address_rate rate);

/* Returns how many tokens the address has used and not regained. */
int64_t address_used(struct address_table *table, uint64_t network, struct address_rate rate, int64_t now_ns);

/* Counts one more thing that the address holds, if it holds fewer than `most`. Returns whether it may hold it. */
bool address_hold(struct address_table *table, uint64_t network, enum address_held what, unsigned most);
void address_release(struct address_table *table, uint64_t network, enum address_held what, unsigned count);

#endif
