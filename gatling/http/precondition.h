/* precondition.h - conditional requests (RFC 9110, section 13). */
#ifndef GATLING_HTTP_PRECONDITION_H
#define GATLING_HTTP_PRECONDITION_H

#include <time.h>

#include "gatling/http/request.h"

/* A request without these fields has none: most have none, so test this first. */
enum {
	PRECONDITIONS = 1U << FIELD_IF_MATCH | 1U << FIELD_IF_UNMODIFIED_SINCE | 1U << FIELD_IF_NONE_MATCH |
					1U << FIELD_IF_MODIFIED_SINCE
};

/* Identify a version of a representation. */
struct validators {
	struct slice etag;     /* a strong entity-tag with its quotes; absent if unknown: then none matches */
	struct slice etag_end; /* what an unknown one ends with; absent if that is not known, either */
	time_t last_modified;
	/* last_modified as an HTTP-date; absent if that is not known to change with the representation: then conditions
	 * with dates are ignored */
	struct slice date;
};

/* Evaluates the preconditions of a GET or HEAD in the order of section 13.2.2 for a resource that exists. As long as
 * the entity-tag is unknown, and one that it may be comes in If-None-Match together with the exact date in
 * If-Modified-Since, the date decides. Returns 0 to go on, or the status to answer: 304 or 412. */
int precondition_status(const struct request *request, const struct validators *validators);

/* Returns whether If-None-Match, if it is not longer than PRECONDITION_TAGS_MAX, nor overruled by If-Match or
 * If-Unmodified-Since, lists an entity-tag. */
enum { PRECONDITION_TAGS_MAX = 1024 }; /* bytes of a list that is searched for several entity-tags */
bool precondition_has(const struct request *request, struct slice etag);

/* Does the same for an entity-tag that begins with start. Returns it, or an absent slice. */
struct slice precondition_starting(const struct request *request, struct slice start);

/* Returns whether the Range field applies: there is no If-Range, or it matches (section 13.1.5). A date matches if it
 * is exactly that of the representation, and before the current second, in which that may change again (section
 * 8.8.2.2). */
bool precondition_range(const struct request *request, const struct validators *validators);

/* What a request would do with an entity-tag that is not known yet. */
enum etag_use {
	ETAG_UNUSED,  /* nothing: it asks for a part */
	ETAG_SENT,    /* the answer has one, for later requests */
	ETAG_USEFUL,  /* it is compared, but the date decides without it */
	ETAG_AWAITED, /* the answer depends on it */
};

enum etag_use precondition_etag_use(const struct request *request, const struct validators *validators);

#endif
