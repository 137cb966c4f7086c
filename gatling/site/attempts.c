/* attempts.c - see attempts.h. A table of sets of four: if its set is full, an address replaces the one in it with the
 * fewest attempts. So no address pays for another, and the table never grows. */
#include "gatling/site/attempts.h"

#include <openssl/rand.h>
#include <pthread.h>

#include "gatling/base/hash.h"

enum { WAYS = 4, SETS = ATTEMPTS_ADDRESSES / WAYS };

struct address_entry {
	struct peer address;
	int64_t full_ms; /* when it will have regained all attempts */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* guarded by the mutex */
static struct address_entry table[SETS][WAYS];
static uint64_t seed; /* keeps clients from choosing with whom they share a set; 0: none yet */

struct peer attempts_address(const struct peer *peer) {
	struct peer network = *peer;
	if (!peer_is_ipv4(peer)) memset(network.address.s6_addr + 8, 0, 8);
	return network;
}

/* Returns the entry of an address, which replaces another if it is new. With the mutex locked. */
static struct address_entry *find(const struct peer *peer) {
	struct peer address = attempts_address(peer);
	struct slice key = {.at = (const char *)address.address.s6_addr, .length = sizeof address.address.s6_addr};
	if (!seed && RAND_bytes((unsigned char *)&seed, sizeof seed) != 1) seed = 1;
	struct address_entry *set = table[hash_octets(seed, key) % SETS], *least = set;
	for (int i = 0; i < WAYS; i++) {
		if (memcmp(&set[i].address, &address, sizeof address) == 0) return &set[i];
		if (set[i].full_ms < least->full_ms) least = &set[i];
	}
	*least = (struct address_entry){.address = address};
	return least;
}

bool attempts_take(const struct peer *peer, int64_t now_ms) {
	pthread_mutex_lock(&mutex);
	struct address_entry *e = find(peer);
	if (e->full_ms < now_ms) e->full_ms = now_ms;
	bool has = e->full_ms - now_ms <= (ATTEMPTS_MOST - 1) * ATTEMPTS_MS;
	if (has) e->full_ms += ATTEMPTS_MS;
	pthread_mutex_unlock(&mutex);
	return has;
}

void attempts_give_back(const struct peer *peer) {
	pthread_mutex_lock(&mutex);
	find(peer)->full_ms -= ATTEMPTS_MS;
	pthread_mutex_unlock(&mutex);
}

unsigned attempts_used(const struct peer *peer, int64_t now_ms) {
	pthread_mutex_lock(&mutex);
	int64_t left_ms = find(peer)->full_ms - now_ms;
	pthread_mutex_unlock(&mutex);
	return left_ms > 0 ? (unsigned)((left_ms + ATTEMPTS_MS - 1) / ATTEMPTS_MS) : 0;
}
