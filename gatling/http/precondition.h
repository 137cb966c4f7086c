/* precondition.h - conditional requests (RFC 9110, section 13). */
#ifndef GATLING_HTTP_PRECONDITION_H
#define GATLING_HTTP_PRECONDITION_H

#include <time.h>

#include "gatling/http/request.h"

/* Tell one version of a representation from another. */
struct validators {
	struct slice etag; /* a strong entity-tag, with its quotes; absent: not known, and nothing matches it */
	time_t last_modified;
	struct slice date; /* last_modified as the value of a field; absent: not known, and fields with dates are ignored */
};

/* Evaluates the preconditions of a GET or HEAD in the order of section 13.2.2 for a resource that exists.
 * Returns 0 to go on, or the status to answer: 304 or 412. */
int precondition_status(const struct request *request, const struct validators *validators);

/* Returns whether a Range field is valid: there is no If-Range, or it matches (section 13.1.5). */
bool precondition_range(const struct request *request, const struct validators *validators);

/* Returns whether the answer depends on the entity-tag. */
bool precondition_wants_etag(const struct request *request);

#endif
