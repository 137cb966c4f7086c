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

/* Which parameters a query has, as far as bits can tell (a Bloom filter of one hash): a query of 8 KiB sets at most 3 %
 * of them. */
enum { PARAMETER_BITS_LOG = 18 };
struct parameter_notes {
	uint64_t bits[(1 << PARAMETER_BITS_LOG) / 64];
};

/* Notes them, so that the query need not be searched for each parameter that a rule requires. */
void parameters_note(struct slice query, struct parameter_notes *notes);

/* Returns whether the query may have the parameter; if not, it does not have it. */
bool parameters_may_have(const struct parameter_notes *notes, const struct parameter *parameter);

#endif
