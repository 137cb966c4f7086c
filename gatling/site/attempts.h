/* attempts.h - how many passwords an address has tried, in all workers together. An address has ATTEMPTS_MOST, and gets
 * one back every ATTEMPTS_MS; of IPv6 a /64 is one. Thread-safe. */
#ifndef GATLING_SITE_ATTEMPTS_H
#define GATLING_SITE_ATTEMPTS_H

#include "gatling/log/access.h"

enum {
	ATTEMPTS_MOST = 10,
	ATTEMPTS_MS = 3000,
	ATTEMPTS_ADDRESSES = 16384 /* that are remembered; beyond that those are forgotten that have used fewest */
};

/* The address, or its network, that counts. */
struct peer attempts_address(const struct peer *peer);

/* Takes one. false: it has none left. now_ms is of the monotonic clock. */
bool attempts_take(const struct peer *peer, int64_t now_ms);

/* Gives one back: it was right. */
void attempts_give_back(const struct peer *peer);

/* How many it has used and not got back. */
unsigned attempts_used(const struct peer *peer, int64_t now_ms);

#endif
