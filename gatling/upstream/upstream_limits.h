/* upstream_limits.h - how long an upstream may take, and how much it may be sent. */
#ifndef GATLING_UPSTREAM_UPSTREAM_LIMITS_H
#define GATLING_UPSTREAM_UPSTREAM_LIMITS_H

#include <stdint.h>

/* The operator's (--limit), or those of the owner for a path (_limits). */
struct upstream_limits {
	int connect_s;     /* to connect, with the handshake of TLS, */
	int first_s;       /* from a request to the first byte of its response, */
	int between_s;     /* and between two bytes, */
	int tunnel_s;      /* or those of a WebSocket, either way */
	uint64_t body_max; /* bytes of the content of a request; more: 413 */
};

#endif
