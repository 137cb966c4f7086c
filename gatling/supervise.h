/* supervise.h - the main thread while the workers serve. It handles signals, notices changed certificates, opens the
 * logs again, tells a service manager that the server is alive, and ends the server when a successor has taken over. */
#ifndef GATLING_SUPERVISE_H
#define GATLING_SUPERVISE_H

#include <signal.h>

#include "gatling/acme/acme.h"
#include "gatling/keeper/link.h"
#include "gatling/status/status.h"
#include "gatling/keeper/take_over.h"
#include "gatling/workers.h"

enum {
	SUPERVISE_DRAIN_MS = 50, /* interval at which connections are counted during the drain delay */
	SUPERVISE_IDLE_MS =
		500 /* after this time idle connections do not stay with a directory that is not served any more */
};

struct supervisor {
	bool terminal; /* the server was started from a terminal */
	/* Another process or the main thread has the sockets, too, so that they outlive a worker that fails. */
	bool shares_sockets;
	int drain_delay_s; /* seconds for which the workers still accept after SIGTERM, */
	bool drain_whole;  /* even if there are no connections */
	struct workers *workers;
	struct log *log, *error_log;            /* NULL: none */
	struct certificate_files *certificates; /* NULL: none */
	struct acme *acme;                      /* NULL: none */
	int watchdog_ms;                        /* interval of the messages that the service is alive; 0: none */
	const struct keeper_link *link;
	struct take_over *take_over;
	struct status *status;   /* NULL: no status page */
	struct sockets *sockets; /* closed when the workers stop accepting */
};

/* Blocks the signals that supervise() handles, also for threads that are started later, and writes them to *signals.
 * Ignores other signals that could end the process. */
void supervise_block_signals(sigset_t *signals);

/* Handles signals until the workers have ended. */
void supervise(const struct supervisor *supervisor, const sigset_t *signals);

#endif
