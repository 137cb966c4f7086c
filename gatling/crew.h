/* crew.h - the workers' threads, as the main thread sees them. */
#ifndef GATLING_CREW_H
#define GATLING_CREW_H

#include <signal.h>

#include "gatling/worker.h"

struct crew;

/* As many workers as the options say, without sockets yet. NULL with errno. */
struct crew *crew_new(const struct options *options);

/* Joins the threads that were started and frees everything. NULL is allowed. */
void crew_free(struct crew *crew);

/* The workers, options->workers of them, for their listening sockets to be filled in. */
struct worker *crew_workers(struct crew *crew);

/* Starts the threads on the descriptor of the root directory and waits until each serves. -1 after a line about what
 * went wrong: then the process can only exit, some threads may be running. log and certificates may be NULL. SIGUSR2
 * must be blocked. */
int crew_start(struct crew *crew, int root, struct log *log, struct certificate_files *certificates, bool kernel_tls);

/* Sends each worker a message. */
void crew_tell(const struct crew *crew, enum control_message message);

/* Whether a thread is still running. When one ends, the thread that called crew_start() gets a SIGUSR2. */
bool crew_running(const struct crew *crew);

/* Whether one has ended because it could not go on; it has said why. */
bool crew_failed(const struct crew *crew);

#endif
