/* arrival.h - who asks, and how the request came: filled in by what carries the request, for all who decide. */
#ifndef GATLING_CLIENT_ARRIVAL_H
#define GATLING_CLIENT_ARRIVAL_H

#include "gatling/client/forwarded.h"

struct arrival {
	const struct peer *client;  /* of the request; a proxy that names none is the client itself */
	bool client_is_known;       /* it is no such proxy */
	enum forwarding forwarding; /* the field in which the other end of the connection, a proxy, is trusted */
	const struct peer *proxy;   /* the address of that proxy; NULL: it is not needed, or there is none */
	struct slice host;          /* the local address as an authority, for requests without Host; absent for none */
	unsigned port;              /* to which the client has connected; 0: a unix socket */
	bool secure;                /* over TLS */
	bool copied;                /* the server copies all bytes that it sends, since it encrypts or frames them */

	/* How far the request has come. */
	struct slice site; /* the path of the directory of the site that has decided, "" for the root; absent: none has */
	int failed;        /* the status to answer if it could not be passed on; else 0 */
	bool rated;        /* it has been counted for the rate of its path */
	bool may_wait;     /* it may wait for a job; otherwise a slow answer is replaced by a cheaper one or 503 */
	/* WAITS_MAX hashes of the paths that were prefetched for it, 0 where there is none; NULL: it has not waited. After
	 * that many jobs it is answered without waiting. */
	const uint64_t *prefetched;
	int64_t since_ms; /* when it first waited; 0: it has not */
};

#endif
