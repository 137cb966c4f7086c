/* client.h - one thread that loads a server: its connections, its schedule, and what it measures. Clients share nothing
 * but the plan, which does not change while they run. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "bench/measures.h"
#include "bench/plan.h"

struct client;

/* Starts the thread of the client of that number, with its clock at started_ns (of CLOCK_MONOTONIC). NULL with errno.
 */
struct client *client_start(const struct plan *plan, unsigned number, int64_t started_ns);

/* Adds what it measured in the seconds that have passed since the last call, and resets that. false: it has ended. */
bool client_collect(struct client *client, struct measures *sum);

/* Asks it to end before its time, as if that were now. */
void client_stop(struct client *client);

/* Waits for its end and frees it. */
void client_join(struct client *client);

#endif
