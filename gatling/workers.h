/* workers.h - the workers' threads, as the main thread sees them. */
#ifndef GATLING_WORKERS_H
#define GATLING_WORKERS_H

#include <signal.h>

#include "gatling/worker.h"

struct workers;

/* As many workers as the options say, without sockets yet. NULL with errno. */
struct workers *workers_new(const struct options *options);

/* Joins the threads that were started and frees everything. NULL is allowed. */
void workers_free(struct workers *crew);

/* The workers, options->workers of them, for their listening sockets to be filled in. */
struct worker *workers_array(struct workers *crew);

/* Starts the threads on the descriptor of the root directory and waits until each serves. -1 after a line about what
 * went wrong: then the process can only exit, some threads may be running. log and certificates may be NULL. SIGUSR2
 * must be blocked. */
int workers_start(struct workers *crew, int root, struct log *log, struct certificate_files *certificates,
				  bool kernel_tls);

/* Sends each worker a message. */
void workers_tell(const struct workers *crew, enum control_message message);

/* Whether a thread is still running. When one ends, the thread that called workers_start() gets a SIGUSR2. */
bool workers_running(const struct workers *crew);

/* Whether one has ended because it could not go on; it has said why. */
bool workers_failed(const struct workers *crew);

#endif
