/* values.h - the names of what is counted, and how it is read: the same in JSON and for Prometheus. */
#ifndef GATLING_STATUS_VALUES_H
#define GATLING_STATUS_VALUES_H

#include <stdbool.h>

#include "gatling/status/counters.h"

struct value_name {
	const char *family;       /* without "gatling_" */
	const char *label, *text; /* what tells it from the others of its family, which are neighbours; NULL: nothing */
	const char *unit;         /* that the family ends in; NULL: none */
	bool grows;               /* a counter, otherwise a gauge */
	const char *help;         /* of the first of a family */
	uint64_t per_unit;        /* 0: 1; ns have 1000000000 a second */
};

extern const struct value_name value_name[VALUES];

/* Returns whether a value is the first of its family. */
bool value_begins_family(unsigned value);

#endif
