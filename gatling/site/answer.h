/* answer.h - decides what answers a request. Knows nothing of how requests and responses travel. */
#ifndef GATLING_SITE_ANSWER_H
#define GATLING_SITE_ANSWER_H

#include "gatling/site/content.h"
#include "gatling/site/response.h"

/* How a request came. */
struct connection_info {
	const struct peer *peer;
	struct slice host; /* the local address as an authority, for requests without Host; absent for none */
	unsigned port;
	bool secure; /* over TLS */

	int failed;   /* the status, if it could not be; else 0 */
	bool patient; /* it can wait; else what takes long is answered with something else, or 503 */
	/* WAITS_MAX hashes of paths for which it has waited until they were fetched, or 0; NULL: none. After so many jobs
	 * it is answered without. */
	const uint64_t *fetched;
};

/* Decides the answer to a request that request_parse() has accepted. OPTIONS and the methods that are
 * refused are answered here, too. */
void answer(const struct content *content, const struct request *request, const struct connection_info *arrival,
			struct response *response);

#endif
