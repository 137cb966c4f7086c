/* coding.h - content codings (RFC 9110, section 8.4.1) and how they are negotiated (12.5.3). */
#ifndef GATLING_HTTP_CODING_H
#define GATLING_HTTP_CODING_H

#include "gatling/http/request.h"

/* In the order of preference among codings of equal weight, the last first. */
enum coding { CODING_IDENTITY, CODING_GZIP, CODING_ZSTD, CODING_BR, CODINGS };

/* A file NAME with this suffix is the file NAME in this coding. */
extern const struct slice coding_suffix[CODINGS];
extern const struct slice coding_name[CODINGS];

/* The weights (qvalues) of the client in thousandths; 0: not acceptable. */
struct coding_weights {
	unsigned of[CODINGS];
};

/* Returns what Accept-Encoding says. Without it identity is preferred, and the others are acceptable. */
struct coding_weights coding_weights(const struct request *request);

/* Returns the best coding in the set `available` (of 1 << coding). Identity is chosen even if it is not acceptable,
 * when there is nothing better. -1: none. */
int coding_choose(const struct coding_weights *weights, unsigned available);

#endif
