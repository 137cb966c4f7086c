/* parameters.h - the parameters that rules require in a query. */
#ifndef GATLING_SITE_RULES_PARAMETERS_H
#define GATLING_SITE_RULES_PARAMETERS_H

#include <stdint.h>

#include "gatling/base/slice.h"

struct parameter {
	struct slice name, value; /* as they are written in a query */
	bool captures;            /* any value will do, */
	bool in_path;             /* if it can be part of a segment: it becomes part of a path */
	uint64_t hash;            /* of parameter_hash() */
};

/* Returns the hash of a parameter for parameters_may_have(). */
uint64_t parameter_hash(const struct parameter *parameter);

/* Finds a parameter in a query (with its '?', or absent), in any encoding, and its value. If there are several, the
 * first one that suits is taken: only an application knows which of them counts. With in_path, a value does not suit
 * that has a segment "." or "..", a NUL or overlong UTF-8: whoever decodes a path with it may get another path. */
bool parameter_find(struct slice query, const struct parameter *parameter, struct slice *value);

/* Notes which parameters a query has, so that it need not be searched for each one that a rule requires. Returns the
 * notes, which are valid until the next call. */
const uint64_t *parameters_note(struct slice query);

/* Returns whether the query may have the parameter; if not, it does not have it. */
bool parameters_may_have(const uint64_t *noted, const struct parameter *parameter);

#endif
