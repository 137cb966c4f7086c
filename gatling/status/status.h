/* status.h - a page that shows what the server does, in a thread of its own: it answers however busy the workers are,
 * and costs them nothing. It answers GET: / (HTML), /json, /metrics (OpenMetrics), /text. It does not ask
 * for a password. It names no files and no clients, and only those sites that get certificates by ACME. */
#ifndef GATLING_STATUS_STATUS_H
#define GATLING_STATUS_STATUS_H

#include "gatling/status/certified.h"
#include "gatling/status/counters.h"

enum {
	STATUS_CLIENTS_MAX = 16,  /* at a time; one more takes the place of the oldest */
	STATUS_HEAD_MAX = 4096,   /* bytes of a request */
	STATUS_CLIENT_MS = 10000, /* that one may take */
	STATUS_WORKERS_MAX = 256, /* that are shown */
	STATUS_SOCKETS_MAX = 256  /* listening sockets whose queues are looked at */
};

struct status;

/* Prepares the page for a listening socket, of which it keeps a duplicate. To be called before the root changes.
 * Returns NULL with errno. */
struct status *status_new(int listener);

/* Starts the thread. about: what is served where; worker: the counters of the workers, which last until status_free().
 * sockets: the listening sockets of the server, which last until status_leave_sockets(). All are copied but the
 * counters. Returns 0, or an errno. */
int status_start(struct status *status, const char *about, struct counters *const *worker, unsigned workers,
				 const int *sockets, unsigned count);

/* Returns the names with certificates that are shown, to be filled in by any thread until status_free(). */
struct certified_list *status_certified(const struct status *status);

/* The server ends: its sockets are about to be closed. handed_over: another process answers from now on. NULL is
 * allowed. */
void status_leave_sockets(struct status *status, bool handed_over);

/* Ends the thread. NULL is allowed. */
void status_free(struct status *status);

/* Shows the text of a running server's page on the terminal, anew each second, until it is interrupted; once if stdout
 * is no terminal. address: as --status takes it. Returns an exit status. */
int status_top(const char *address);

#endif
