/* client.h - one thread that loads a server: its connections, its schedule, and what it measures. Clients share nothing
 * but the plan, which does not change while they run. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"

struct client;

/* Makes the client of that number. Returns NULL with errno if there is no memory. */
struct client *client_new(const struct plan *plan, unsigned number);

/* Starts its thread; its run begins at started_ns of CLOCK_MONOTONIC. Returns 0, or -1 with errno. */
int client_start(struct client *client, int64_t started_ns);

/* Adds what it has measured since the last call to sum. Returns false if it has ended. */
bool client_collect(struct client *client, struct measures *sum);

/* Asks it to begin nothing more and to end. What is under way gets CLIENT_GRACE_S, and then is dropped. */
enum { CLIENT_GRACE_S = 1 };
void client_stop(struct client *client);

/* Waits for its end, if it was started, and frees it. NULL is allowed. */
void client_free(struct client *client);

#endif
