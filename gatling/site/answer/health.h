/* health.h - tells a balancer whether to send more clients to this server. */
#ifndef GATLING_SITE_ANSWER_HEALTH_H
#define GATLING_SITE_ANSWER_HEALTH_H

#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

/* Answers a request if it is for the path of --health, which is not NULL. Returns whether it was. */
bool health_path_answer(const struct site_context *context, const struct request *request, struct response *response);

/* Answers a request for the path of --health, whatever its host: 200, or 503 when the server is about to end. Returns
 * whether it was for that. To be asked before the limits are: a server that has reached one is not ill. */
static inline bool health_answer(const struct site_context *context, const struct request *request,
								 struct response *response) {
	return context->options->health && health_path_answer(context, request, response);
}

#endif
