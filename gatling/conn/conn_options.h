/* conn_options.h - the options about clients: how long each state of a connection may last, and how much is kept. */
#ifndef GATLING_CONN_CONN_OPTIONS_H
#define GATLING_CONN_CONN_OPTIONS_H

#include "gatling/client/forwarded.h"

struct conn_options {
	/* Seconds; 0: no limit. deadline.c has what follows from them. */
	int timeout_s;                /* of a body, of the wait for a job, and without an acknowledgement of an answer */
	int head_timeout_s;           /* of a PROXY header, of a handshake and of a request head, each */
	int keepalive_timeout_s;      /* of an idle connection */
	int min_rate;                 /* bytes a second, see min_rate.h; 0: none */
	uint64_t client_memory;       /* bytes that a worker keeps for its clients */
	uint64_t memory;              /* bytes of that and of what OpenSSL holds for connections, of all workers together */
	struct peer_nets proxies;     /* balancers: their connections begin with a PROXY header */
	struct trusted_proxies trust; /* proxies that say in each request whose it is */
};

#endif
