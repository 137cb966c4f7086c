/* client.h - a thread of a crowd, with its arrivals, its visitors, and their results. */
#ifndef BENCH_CROWD_CLIENT_H
#define BENCH_CROWD_CLIENT_H

#include "bench/crowd/plan.h"
#include "bench/crowd/tally.h"

struct client;

/* Makes the client with that number. Returns NULL without memory. */
struct client *client_new(const struct crowd_plan *plan, unsigned number);

/* Starts the thread. Visitors arrive from started_ns on (CLOCK_MONOTONIC). Returns 0, or -1 with errno. */
int client_start(struct client *client, int64_t started_ns);

/* Waits for the end of the next second of the run, and adds its results to sum. Returns false if the run has ended
 * instead. */
bool client_collect(struct client *client, struct tally *sum);

/* Makes the thread end soon. */
void client_stop(struct client *client);

/* Waits for the thread to end, if it was started, and frees the client; NULL is allowed. */
void client_free(struct client *client);

#endif
