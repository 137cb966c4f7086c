/* answer.h - decides how a request is answered, independent of how requests and responses are transferred. */
#ifndef GATLING_SITE_ANSWER_ANSWER_H
#define GATLING_SITE_ANSWER_ANSWER_H

#include "gatling/client/arrival.h"
#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

/* Fills in the response to a request that request_parse() has accepted, also to OPTIONS and to methods that are
 * refused. It may refer to context->room. */
void answer(const struct site_context *context, const struct request *request, const struct arrival *arrival,
			struct response *response);

#endif
