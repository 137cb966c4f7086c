/* upstream_counts.c - see upstream_counts.h. */
#include "gatling/status/upstream_counts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct upstream_counts known[UPSTREAM_COUNTS_MAX], others = {.address = "others"};
static unsigned count; /* of those in known; only grows */

/* Returns the counters of an address, or NULL if there are too many. Takes the address over. The mutex must be
 * locked. */
static struct upstream_counts *find_counts(char *address) {
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(known[i].address, address) != 0) continue;
		free(address);
		return &known[i];
	}
	if (count == UPSTREAM_COUNTS_MAX) {
		free(address);
		return NULL;
	}
	known[count].address = address;
	__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	return &known[count - 1];
}

struct upstream_counts *upstream_counts_of(const char *address) {
	char *copy = strdup(address);
	for (char *c = copy; c && *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') *c = '?';
	pthread_mutex_lock(&mutex);
	struct upstream_counts *found = copy ? find_counts(copy) : NULL;
	pthread_mutex_unlock(&mutex);
	return found ? found : &others;
}

const struct upstream_counts *upstream_counts_at(unsigned i) {
	const unsigned n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
	if (i < n) return &known[i];
	return i == n && upstream_counts_value(&others, UPSTREAM_REQUESTS) ? &others : NULL;
}
