/* values.h - the names of the values, and their units: the same in JSON and for Prometheus. */
#ifndef GATLING_STATUS_VALUES_H
#define GATLING_STATUS_VALUES_H

#include <stdbool.h>

#include "gatling/status/counters.h"

struct value_name {
	const char *family;       /* without "gatling_" */
	const char *label, *text; /* tell it from the others of its family, which are next to it; NULL: it is alone */
	const char *unit;         /* in which the family's name ends; NULL: none */
	bool grows;               /* a counter, otherwise a gauge */
	const char *help;         /* only for the first of a family */
	uint64_t per_unit;        /* how many make one unit, as 1000000000 ns a second; 0: 1 */
};

extern const struct value_name value_name[VALUES];

/* Returns whether a value is the first of its family. */
bool value_begins_family(unsigned value);

#endif
