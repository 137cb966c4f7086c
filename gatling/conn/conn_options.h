/* conn_options.h - the options about clients: how long each state of a connection may last, and how much is kept. */
#ifndef GATLING_CONN_CONN_OPTIONS_H
#define GATLING_CONN_CONN_OPTIONS_H

#include "gatling/client/forwarded.h"

struct conn_options {
	/* Seconds; 0: no limit. deadline.c derives the other times from these. */
	int timeout_s;                /* for a request body, for a job, and for an acknowledgement of a response */
	int head_timeout_s;           /* for a PROXY header, a handshake and a request head, each */
	int keepalive_timeout_s;      /* for an idle connection */
	int min_rate;                 /* bytes per second, see min_rate.h; 0: none */
	uint64_t client_memory;       /* bytes that a worker may keep for its clients */
	uint64_t memory;              /* bytes of that and of OpenSSL's memory for connections, of all workers together */
	struct peer_nets proxies;     /* balancers: their connections begin with a PROXY header */
	struct trusted_proxies trust; /* proxies that name the client in each request */
};

#endif
