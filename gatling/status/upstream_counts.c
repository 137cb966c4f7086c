/* upstream_counts.c - see upstream_counts.h. */
#include "gatling/status/upstream_counts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const struct value_row upstream_value_row[UPSTREAM_VALUES] = {
	[UPSTREAM_REQUESTS] = {.family = "upstream_requests",
						   .which = "requests",
						   .grows = true,
						   .help = "Requests that were passed on to an upstream, each attempt."},
	[UPSTREAM_RESPONSES] = {.family = "upstream_responses",
							.which = "responses",
							.grows = true,
							.help = "Responses of which the head has come."},
	[UPSTREAM_ERRORS] = {.family = "upstream_errors",
						 .which = "errors",
						 .grows = true,
						 .help = "Of them those with a status of 5xx."},
	[UPSTREAM_FAILURES] = {.family = "upstream_failures",
						   .which = "failures",
						   .grows = true,
						   .help = "Attempts without a connection, or without a whole response in time."},
	[UPSTREAM_NS] = {.family = "upstream_response_seconds",
					 .which = "response_seconds",
					 .unit = "seconds",
					 .grows = true,
					 .help = "Time from requests to the heads of their responses.",
					 .per_unit = 1000000000},
	[UPSTREAM_ACTIVE] = {.family = "upstream_active_requests", .which = "active", .help = "Requests under way."},
	[UPSTREAM_IDLE] = {.family = "upstream_idle_connections",
					   .which = "idle",
					   .help = "Connections that are kept for the next request."},
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct upstream_counts known[UPSTREAM_COUNTS_MAX], others = {.address = "others"};
static unsigned count; /* of those in known; only grows */

/* Returns the counters of an address, or NULL if there are too many. Takes the address over. The mutex must be
 * locked. */
static struct upstream_counts *find(char *address) {
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
	struct upstream_counts *found = copy ? find(copy) : NULL;
	pthread_mutex_unlock(&mutex);
	return found ? found : &others;
}

const struct upstream_counts *upstream_counts_at(unsigned i) {
	const unsigned n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
	if (i < n) return &known[i];
	return i == n && upstream_counts_value(&others, UPSTREAM_REQUESTS) ? &others : NULL;
}
