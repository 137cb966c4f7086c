/* answer.h - decides what answers a request. Knows nothing of how requests and responses travel. */
#ifndef GATLING_SITE_ANSWER_ANSWER_H
#define GATLING_SITE_ANSWER_ANSWER_H

#include "gatling/site/answer/connection_info.h"
#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

/* Decides the answer to a request that request_parse() has accepted. OPTIONS and the methods that are
 * refused are answered here, too. */
void answer(const struct site_context *context, const struct request *request, const struct connection_info *arrival,
			struct response *response);

#endif
