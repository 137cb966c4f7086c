/* supervise.h - what the main thread does while the workers serve: it handles signals, looks after the certificates and
 * the log, gives signs of life to a service manager, and gives way to a successor. */
#ifndef GATLING_SUPERVISE_H
#define GATLING_SUPERVISE_H

#include <signal.h>

#include "gatling/acme/acme.h"
#include "gatling/service.h"
#include "gatling/status/status.h"
#include "gatling/take_over.h"
#include "gatling/workers.h"

enum { SUPERVISE_DRAIN_MS = 50 /* between two looks at whether there are connections, before the end */ };

struct supervisor {
	bool terminal;       /* it was started from a terminal */
	bool shares_sockets; /* another process has them, too, or main thread has: they outlive a worker that fails */
	int drain_delay_s;   /* for which SIGTERM lets the workers go on, */
	bool drain_whole;    /* also when there are no connections */
	struct workers *workers;
	struct log *log, *error_log;            /* NULL: none */
	struct certificate_files *certificates; /* NULL: none */
	struct acme *acme;                      /* NULL: none */
	const struct service *service;
	struct take_over *take_over;
	struct status *status;   /* NULL: there is no page */
	struct sockets *sockets; /* closed when the workers stop accepting */
};

/* Blocks the signals that supervise() handles, also for the threads that are started from now on, and has the others
 * that could end the process ignored. */
void supervise_block_signals(sigset_t *signals);

/* Returns when the workers have ended. */
void supervise(const struct supervisor *supervisor, const sigset_t *signals);

#endif
