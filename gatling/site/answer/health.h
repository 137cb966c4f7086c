/* health.h - tells a balancer whether to send more clients to this server. */
#ifndef GATLING_SITE_ANSWER_HEALTH_H
#define GATLING_SITE_ANSWER_HEALTH_H

#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

/* Answers a request for the path of --health, which must not be NULL, whatever its host: with 200, or 503 when the
 * server is about to end. Returns whether it was one. Call it before limits are tested: a server that has reached one
 * is not ill. */
bool health_answer(const struct site_context *context, const struct request *request, struct response *response);

#endif
