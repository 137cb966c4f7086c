/* parameters.h - parameters of a query that rules ask for. */
#ifndef GATLING_SITE_RULES_PARAMETERS_H
#define GATLING_SITE_RULES_PARAMETERS_H

#include <stdint.h>

#include "gatling/base/slice.h"

struct parameter {
	struct slice name, value; /* as they are written in a query */
	bool captures;            /* the value may be any */
	uint64_t hash;            /* by parameter_hash() */
};

/* Returns what tells parameters apart. */
uint64_t parameter_hash(const struct parameter *parameter);

/* Finds a parameter in a query (with its '?', or absent), in any encoding. If it is there more than once, one that
 * suits: which of them counts, only an application knows. */
bool parameter_find(struct slice query, const struct parameter *parameter, struct slice *value);

/* Notes which parameters a query has, so that it need not be searched for each that a rule asks for. Returns that,
 * until the next call. */
const uint64_t *parameters_note(struct slice query);

/* Returns whether the query may have the parameter: false is certain. */
bool parameters_may_have(const uint64_t *noted, const struct parameter *parameter);

#endif
