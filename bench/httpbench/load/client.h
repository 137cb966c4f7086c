/* client.h - one thread that loads a server: its connections, its schedule, and what it measures. Clients share nothing
 * but the plan, which does not change while they run. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"

struct client;

/* The client of that number, ready to start. NULL with errno: no memory. */
struct client *client_new(const struct plan *plan, unsigned number);

/* Starts its thread, with its clock at started_ns (of CLOCK_MONOTONIC). 0, or -1 with errno. */
int client_start(struct client *client, int64_t started_ns);

/* Adds what it measured in the seconds that have passed since the last call, and resets that. false: it has ended. */
bool client_collect(struct client *client, struct measures *sum);

/* Asks it to end before its time, as if that were now. */
void client_stop(struct client *client);

/* Waits for its end, if it was started, and frees it. NULL is allowed. */
void client_free(struct client *client);

#endif
