/* challenge.h - answers ACME challenges (RFC 8555, section 8.3) from memory, whatever files, rules and passwords the
 * site has. */
#ifndef GATLING_SITE_ANSWER_CHALLENGE_H
#define GATLING_SITE_ANSWER_CHALLENGE_H

#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

bool challenge_path_answer(const struct site_context *context, const struct request *request,
						   struct response *response);

/* Answers a request for a proof that the server has. Returns whether it was one; otherwise there may be a file. */
static inline bool challenge_answer(const struct site_context *context, const struct request *request,
									struct response *response) {
	return context->challenges && challenge_path_answer(context, request, response);
}

#endif
