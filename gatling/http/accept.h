/* accept.h - the weights of what a client accepts (RFC 9110, section 12.4.2), and its media types (section 12.5.1). */
#ifndef GATLING_HTTP_ACCEPT_H
#define GATLING_HTTP_ACCEPT_H

#include "gatling/http/request.h"

enum { ACCEPT_WEIGHT_MAX = 1000 };

/* Removes the parameters from the end of an element such as "gzip;q=0.5", and returns its weight in thousandths. One
 * that is malformed or absent counts as ACCEPT_WEIGHT_MAX. *others: there are other parameters. */
unsigned accept_take_weight(struct slice *element, bool *others);

/* What Accept says of a media type. */
struct accept {
	unsigned weight; /* of the most specific range that it is in, in thousandths; 0: not acceptable */
	bool named;      /* that is the type itself, not a range such as all pictures */
};

/* Returns what Accept says of a media type without parameters. Ranges that have parameters do not count. Without the
 * field everything has ACCEPT_WEIGHT_MAX. */
struct accept accept_of(const struct request *request, struct slice type);

#endif
