/* address_table.c - see address_table.h. */
#include "gatling/client/address_table.h"

#include <openssl/rand.h>
#include <pthread.h>

#include "gatling/base/slice.h"

enum { LOCKS = 64 };

static struct { _Alignas(64) pthread_mutex_t mutex; } lock[LOCKS] = {[0 ... LOCKS - 1] = {PTHREAD_MUTEX_INITIALIZER}};

static uint64_t seed; /* keeps clients from choosing with whom they share a set */
static pthread_once_t seeded = PTHREAD_ONCE_INIT;

static void make_seed(void) {
	if (RAND_bytes((unsigned char *)&seed, sizeof seed) != 1) seed = 1;
}

static bool is_unused(const struct address_entry *e) {
	return !e->held[ADDRESS_CONNECTIONS] && !e->held[ADDRESS_REQUESTS];
}

/* Returns the entry of a network, or makes one in place of the unused one that has used least; NULL: all are in use. */
static struct address_entry *find_entry(struct address_entry *set, uint64_t network) {
	struct address_entry *least = NULL;
	for (int i = 0; i < ADDRESS_WAYS; i++) {
		if (set[i].network == network) return &set[i];
		if (is_unused(&set[i]) && (!least || set[i].full_ns < least->full_ns)) least = &set[i];
	}
	if (least) *least = (struct address_entry){.network = network};
	return least;
}

/* Locks the set of a network, and returns the result of find_entry(). The caller unlocks *mutex. */
static struct address_entry *enter(struct address_table *t, uint64_t network, pthread_mutex_t **mutex) {
	pthread_once(&seeded, make_seed);
	struct slice key = {.at = (const char *)&network, .length = sizeof network};
	uint64_t set = slice_hash(seed, key) % t->sets;
	*mutex = &lock[set % LOCKS].mutex;
	pthread_mutex_lock(*mutex);
	return find_entry(t->set[set], network);
}

/* This is the generic cell rate algorithm (ITU-T I.371), which needs one time and no timer. */
bool address_take(struct address_table *t, uint64_t network, struct address_rate rate, int64_t now_ns) {
	pthread_mutex_t *mutex;
	struct address_entry *e = enter(t, network, &mutex);
	if (e && e->full_ns < now_ns) e->full_ns = now_ns;
	bool has = e && e->full_ns - now_ns <= (rate.burst - 1) * rate.interval_ns;
	if (has) e->full_ns += rate.interval_ns;
	pthread_mutex_unlock(mutex);
	return has;
}

void address_give_back(struct address_table *t, uint64_t network, struct address_rate rate) {
	pthread_mutex_t *mutex;
	struct address_entry *e = enter(t, network, &mutex);
	if (e) e->full_ns -= rate.interval_ns;
	pthread_mutex_unlock(mutex);
}

int64_t address_used(struct address_table *t, uint64_t network, struct address_rate rate, int64_t now_ns) {
	pthread_mutex_t *mutex;
	const struct address_entry *e = enter(t, network, &mutex);
	int64_t left_ns = e ? e->full_ns - now_ns : 0;
	pthread_mutex_unlock(mutex);
	return left_ns > 0 ? (left_ns + rate.interval_ns - 1) / rate.interval_ns : 0;
}

bool address_hold(struct address_table *t, uint64_t network, enum address_held what, unsigned most) {
	pthread_mutex_t *mutex;
	struct address_entry *e = enter(t, network, &mutex);
	bool may = e && e->held[what] < most;
	if (may) e->held[what]++;
	pthread_mutex_unlock(mutex);
	return may;
}

void address_release(struct address_table *t, uint64_t network, enum address_held what, unsigned count) {
	pthread_mutex_t *mutex;
	struct address_entry *e = enter(t, network, &mutex);
	if (e) e->held[what] -= e->held[what] < count ? e->held[what] : count;
	pthread_mutex_unlock(mutex);
}
