/* workers.h - the workers' threads, as the main thread sees them. */
#ifndef GATLING_WORKERS_H
#define GATLING_WORKERS_H

#include <signal.h>

#include "gatling/worker.h"

struct workers;

/* Returns options->workers workers without listening sockets, or NULL with errno. The options must outlive them. */
struct workers *workers_new(const struct options *options);

/* Joins the threads that were started and frees everything. NULL is allowed. */
void workers_free(struct workers *workers);

/* Returns the workers, options->workers of them, so that their listening sockets can be filled in. */
struct worker *workers_array(struct workers *workers);

/* Returns the counters of worker n, which are valid as long as the workers. */
struct counters *workers_counters(struct workers *workers, unsigned n);

/* Starts the threads, and waits until each worker can serve. root: descriptor of the root directory; log and
 * certificates may be NULL. SIGUSR2 must be blocked. Returns 0, or -1 after printing an error: then some threads may be
 * running, and the process can only exit. */
int workers_start(struct workers *workers, int root, struct mounts *mounts, struct log *log,
				  struct certificate_files *certificates, bool kernel_tls);

/* Sends each worker a message. */
void workers_tell(const struct workers *workers, enum control_message message);

/* Sends each worker a CONTROL_PING. Returns whether all that are running have answered the last one. */
bool workers_alive(struct workers *workers);

/* Returns how many connections the workers have. */
unsigned workers_connections(const struct workers *workers);

/* Returns whether a thread is still running. When one ends, the thread that called workers_start() gets a SIGUSR2. */
bool workers_running(const struct workers *workers);

/* Returns whether a worker has ended because it could not go on; it has reported the reason. */
bool workers_failed(const struct workers *workers);

#endif
