/* client.h - one thread of a crowd: its schedule, its visitors and what became of them. */
#ifndef BENCH_CROWD_CLIENT_H
#define BENCH_CROWD_CLIENT_H

#include "bench/crowd/plan.h"
#include "bench/crowd/tally.h"

struct client;

/* Makes the client of that number. NULL: ENOMEM. */
struct client *client_new(const struct crowd_plan *plan, unsigned number);

/* Starts its thread; visitors are due from started_ns of CLOCK_MONOTONIC on. Returns 0, or -1 with errno. */
int client_start(struct client *client, int64_t started_ns);

/* Waits for the end of the next second of its run and adds what became of it to sum. Returns false if the run has
 * ended before. */
bool client_collect(struct client *client, struct tally *sum);

/* Asks it to end now. */
void client_stop(struct client *client);

/* Waits for its end, if it was started, and frees it. NULL is allowed. */
void client_free(struct client *client);

#endif
