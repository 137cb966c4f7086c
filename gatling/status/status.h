/* status.h - a page that shows what the server does. It has a thread of its own, so that it answers however busy the
 * workers are, and costs them nothing. It answers GET for / (HTML), /json, /metrics (OpenMetrics) and /text. It does
 * not ask for a password, but does not answer pages of other sites (origin.h). It names no files and no clients, and
 * only those sites that get certificates by ACME. */
#ifndef GATLING_STATUS_STATUS_H
#define GATLING_STATUS_STATUS_H

#include "gatling/status/certified.h"
#include "gatling/status/counters.h"
#include "gatling/status/origin.h"

enum {
	STATUS_CLIENTS_MAX = 16,  /* at a time; another one replaces the oldest */
	STATUS_HEAD_MAX = 4096,   /* bytes of a request */
	STATUS_CLIENT_MS = 10000, /* after which a client is disconnected */
	STATUS_WORKERS_MAX = 256, /* workers that are shown */
	STATUS_SOCKETS_MAX = 256  /* listening sockets whose queues are shown */
};

struct status;

/* Prepares the page for a listening socket, which it duplicates. names: under which it answers; copied. Call it before
 * the root changes. Returns NULL with errno on failure. */
struct status *status_new(int listener, const struct status_names *names);

/* Starts the thread. about: a text on what is served where. worker: the counters of the workers, which must last until
 * status_free(). sockets: the listening sockets of the server, which must last until status_leave_sockets(). Everything
 * but the counters is copied. Returns 0 or an errno. */
int status_start(struct status *status, const char *about, struct counters *const *worker, unsigned workers,
				 const int *sockets, unsigned count);

/* Returns the names with certificates to show, which any thread may fill in until status_free(). */
struct certified_list *status_certified(const struct status *status);

/* Tells the thread that the server ends, and that its sockets are about to be closed. handed_over: another process
 * answers from now on. NULL is allowed. */
void status_leave_sockets(struct status *status, bool handed_over);

/* Ends the thread. NULL is allowed. */
void status_free(struct status *status);

/* Shows the text of a running server's page on the terminal, each second until it is interrupted, or once if stdout is
 * not a terminal. address: as for --status. Returns an exit status. */
int status_top(const char *address);

#endif
