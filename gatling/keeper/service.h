/* service.h - the interface to a service manager such as systemd(1), which passes listening sockets (sd_listen_fds(3)),
 * and gets messages about the state of the service (sd_notify(3)), also regular ones that it is alive
 * (sd_watchdog_enabled(3)). */
#ifndef GATLING_KEEPER_SERVICE_H
#define GATLING_KEEPER_SERVICE_H

#include <stdbool.h>

#include "gatling/keeper/sockets.h"

enum { SERVICE_WAIT_MS = 2000 };

struct service {
	int channel;     /* the socket to the manager; -1: none */
	int watchdog_ms; /* interval of the messages that the service is alive; 0: none are wanted */
};

/* Adds the sockets in the environment (LISTEN_FDS) to those of the process. One that is called "https" (LISTEN_FDNAMES)
 * or has port 443 speaks TLS; "status" is for the status page. Those of UDP are for HTTP/3. Connects to the service
 * manager (NOTIFY_SOCKET). Removes these variables from the environment. Call it before any other file is opened, and
 * before the root changes. Returns 0, or -1 after printing an error. */
int service_open(struct service *service, struct sockets *sockets, struct sockets *udp);

/* Sends the service manager a message, see sd_notify(3). If its queue is full, as it may be when the machine starts, a
 * message that begins with "READY=1" waits for room for up to SERVICE_WAIT_MS, since the manager would wait for it for
 * minutes. Other messages are lost then, which is not an error. */
void service_tell(const struct service *service, const char *state);

/* Returns whether there is a service manager, which restarts the service when it has ended. */
bool service_is_managed(const struct service *service);

#endif
