/* challenge.h - answers ACME challenges (RFC 8555, section 8.3) from memory, whatever files, rules and passwords the
 * site has. */
#ifndef GATLING_SITE_ANSWER_CHALLENGE_H
#define GATLING_SITE_ANSWER_CHALLENGE_H

#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

/* Answers a request for a proof that the server has; context->challenges must not be NULL. Returns whether it was one;
 * otherwise there may be a file. */
bool challenge_answer(const struct site_context *context, const struct request *request, struct response *response);

#endif
