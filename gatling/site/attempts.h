/* attempts.h - counts the passwords that an address has tried in all workers. An address has ATTEMPTS_MOST attempts,
 * and regains one every ATTEMPTS_MS; an IPv6 /64 counts as one address. Thread-safe. */
#ifndef GATLING_SITE_ATTEMPTS_H
#define GATLING_SITE_ATTEMPTS_H

#include "gatling/log/access.h"

enum {
	ATTEMPTS_MOST = 10,
	ATTEMPTS_MS = 3000,
	ATTEMPTS_ADDRESSES = 16384 /* that are remembered; of more, those with the fewest attempts are forgotten */
};

/* Returns the address, or the network, that counts. */
struct peer attempts_address(const struct peer *peer);

/* Takes an attempt. Returns false if the address has none left. now_ms is of the monotonic clock. */
bool attempts_take(const struct peer *peer, int64_t now_ms);

/* Gives an attempt back: the password was right. */
void attempts_give_back(const struct peer *peer);

/* Returns how many attempts the address has used and not regained. */
unsigned attempts_used(const struct peer *peer, int64_t now_ms);

#endif
