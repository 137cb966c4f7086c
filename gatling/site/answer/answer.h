/* answer.h - decides how a request is answered, independent of how requests and responses are transferred. */
#ifndef GATLING_SITE_ANSWER_ANSWER_H
#define GATLING_SITE_ANSWER_ANSWER_H

#include "gatling/client/arrival.h"
#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

enum { VARY_MAX = 64 }; /* bytes of the Vary line that rules with conditions add */

/* Where a worker's answers are written that a response refers to. The next answer() overwrites them. */
struct answer_room {
	char location[LOCATION_MAX];
	char lines[AUTH_LINES_MAX + VARY_MAX + HEADER_OCTETS_MAX];
	struct header_filled filled;
	char script_root[SCRIPT_ROOT_MAX], script_path[1 + TARGET_MAX], script_target[1 + TARGET_MAX + 1];
	char proof[CHALLENGE_PROOF_MAX];
};

/* Fills in the response to a request that request_parse() has accepted, also to OPTIONS and to methods that are
 * refused. It may refer to context->room. */
void answer(const struct site_context *context, const struct request *request, const struct arrival *arrival,
			struct response *response);

#endif
