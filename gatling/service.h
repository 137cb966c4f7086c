/* service.h - what a service manager such as systemd(1) passes to a service, and hears from it: listening sockets
 * (sd_listen_fds(3)), messages about its state (sd_notify(3)), signs of life (sd_watchdog_enabled(3)). */
#ifndef GATLING_SERVICE_H
#define GATLING_SERVICE_H

#include <stdbool.h>

#include "gatling/sockets.h"

enum { SERVICE_WAIT_MS = 2000 };

struct service {
	int channel;     /* -1: there is no manager */
	int watchdog_ms; /* signs of life are due so often; 0: none is wanted */
};

/* Takes the sockets that the environment names (LISTEN_FDS), and makes them those of the process; one called "https"
 * (LISTEN_FDNAMES) speaks TLS, and so does one of port 443; "status" is for the status page. Opens the way to the
 * service manager (NOTIFY_SOCKET). Takes all of this out of the environment. To be called before another file is
 * opened, and before the root changes. Returns 0, or -1 after printing an error. */
int service_open(struct service *service, struct sockets *sockets);

/* Tells the service manager something, as sd_notify(3): "READY=1", for which it would wait for minutes. So with that
 * one waits for at most SERVICE_WAIT_MS while its queue is full, as when a machine starts. Nothing fails if it does not
 * hear. */
void service_tell(const struct service *service, const char *state);

/* Returns whether there is one, which restarts a service that has ended. */
bool service_is_managed(const struct service *service);

#endif
