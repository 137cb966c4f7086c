/* connection_info.h - how a request came. */
#ifndef GATLING_SITE_ANSWER_CONNECTION_INFO_H
#define GATLING_SITE_ANSWER_CONNECTION_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/base/peer.h"
#include "gatling/base/slice.h"

struct connection_info {
	const struct peer *peer;
	struct slice host; /* the local address as an authority, for requests without Host; absent for none */
	unsigned port;
	bool secure;  /* over TLS */
	bool copied;  /* the server copies all bytes that it sends, since it encrypts or frames them */
	int failed;   /* the status if it could not be passed on; else 0 */
	bool patient; /* it can wait; else what takes long is answered with something else, or 503 */
	/* WAITS_MAX hashes of paths for which it has waited until they were fetched, or 0; NULL: none. After so many jobs
	 * it is answered without. */
	const uint64_t *fetched;
};

#endif
