/* range.h - byte ranges (RFC 9110, section 14). */
#ifndef GATLING_HTTP_RANGE_H
#define GATLING_HTTP_RANGE_H

#include <stdint.h>

#include "gatling/base/slice.h"

enum { RANGES_MAX = 16 }; /* in one request; a larger set is ignored */

struct range {
	uint64_t first;  /* offset of the first byte */
	uint64_t length; /* never 0 */
};

/* Parses the value of a Range field for a representation of `size` bytes. Returns
 *  > 0: the number of satisfiable ranges, cut to the representation, in the order of the request, in range[RANGES_MAX];
 *    0: the field is to be ignored: another unit, bad syntax, more than RANGES_MAX ranges, or several that together
 *       exceed the whole (RFC 9110, section 17.15);
 *   -1: none can be satisfied: 416. */
int range_parse(struct slice value, uint64_t size, struct range *range);

#endif
