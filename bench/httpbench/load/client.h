/* client.h - a thread that loads a server, with its connections, its schedule, and its results. Clients share only the
 * plan, which does not change while they run. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"

struct client;

/* Makes the client with that number. Returns NULL with ENOMEM if there is no memory. */
struct client *client_new(const struct plan *plan, unsigned number);

/* Starts the client's thread; its run begins at started_ns (CLOCK_MONOTONIC). Returns 0, or -1 with errno. */
int client_start(struct client *client, int64_t started_ns);

/* Adds the results since the last call to sum. Returns false if the client has ended. */
bool client_collect(struct client *client, struct measures *sum);

/* Makes the client begin no further requests, and end. Requests under way are dropped after CLIENT_GRACE_S. */
enum { CLIENT_GRACE_S = 1 };
void client_stop(struct client *client);

/* Waits for the client to end, if it was started, and frees it; NULL is allowed. */
void client_free(struct client *client);

#endif
