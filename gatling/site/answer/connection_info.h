/* connection_info.h - how a request arrived. */
#ifndef GATLING_SITE_ANSWER_CONNECTION_INFO_H
#define GATLING_SITE_ANSWER_CONNECTION_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/peer.h"
#include "gatling/base/slice.h"
#include "gatling/client/forwarded.h"

struct connection_info {
	const struct peer *peer;
	bool peer_is_client; /* it is not a proxy that has named no client */
	struct slice host;   /* the local address as an authority, for requests without Host; absent for none */
	unsigned port;
	bool secure;                /* over TLS */
	enum forwarding forwarding; /* the field in which the peer is trusted */
	bool copied;                /* the server copies all bytes that it sends, since it encrypts or frames them */
	int failed;                 /* the status to answer if it could not be passed on; else 0 */
	bool patient;               /* may wait for a job; otherwise a slow answer is replaced by a cheaper one or 503 */
	/* WAITS_MAX hashes of the paths that were fetched for it, 0 where there is none; NULL: it has not waited. After
	 * that many jobs it is answered without waiting. */
	const uint64_t *fetched;
};

#endif
