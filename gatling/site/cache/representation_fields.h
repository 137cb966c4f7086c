/* representation_fields.h - the inside of representation.c: the field lines of a representation. */
#ifndef GATLING_SITE_CACHE_REPRESENTATION_FIELDS_H
#define GATLING_SITE_CACHE_REPRESENTATION_FIELDS_H

#include "gatling/site/cache/representation.h"

/* Writes the fields of the options, or if they are NULL, those of the origin except for length, coding and validators.
 * Returns 0 or ENOMEM. */
int representation_fields_write(struct representation *file, const struct field_options *options,
								const struct representation *origin);

#endif
