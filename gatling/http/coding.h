/* coding.h - content codings (RFC 9110, section 8.4.1) and how they are negotiated (12.5.3). */
#ifndef GATLING_HTTP_CODING_H
#define GATLING_HTTP_CODING_H

#include "gatling/http/request.h"

/* From the least to the most wanted among what the client likes as well. */
enum coding { CODING_IDENTITY, CODING_GZIP, CODING_ZSTD, CODING_BR, CODINGS };

/* A file beside another, of the same name and this suffix, is the other in this coding. */
extern const struct slice coding_suffix[CODINGS];
extern const struct slice coding_name[CODINGS];

/* How much a client likes each: 0 to 1000, 0 not at all. */
struct coding_weights {
	unsigned of[CODINGS];
};

/* What the request says in Accept-Encoding; without it identity is liked best, and the others are not refused. */
struct coding_weights coding_weights(const struct request *request);

/* The best of those in the set `there` (1 << coding). What the client does not like is better than nothing only if it
 * is identity. -1: there is none. */
int coding_choose(const struct coding_weights *weights, unsigned there);

#endif
