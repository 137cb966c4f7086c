/* coding.h - content codings (RFC 9110, section 8.4.1) and their negotiation (12.5.3). */
#ifndef GATLING_HTTP_CODING_H
#define GATLING_HTTP_CODING_H

#include "gatling/http/request.h"

/* Of codings with equal weights, the last one here is preferred. CODING_DCZ and CODING_DCB, the difference to a
 * dictionary (RFC 9842), are for clients that have that: they are none of those among which others choose. */
enum coding {
	CODING_IDENTITY,
	CODING_GZIP,
	CODING_ZSTD,
	CODING_BR,
	CODINGS,
	CODING_DCZ = CODINGS,
	CODING_DCB,
	CODINGS_NAMED
};

static inline bool coding_is_difference(enum coding coding) { return coding >= CODINGS; }

/* The file NAME in this coding has the name NAME with this suffix. */
extern const struct slice coding_suffix[CODINGS];
extern const struct slice coding_name[CODINGS_NAMED];

/* Returns the name, or path, of the file of which a file with this name is a copy in a coding; the name itself if it
 * has no such suffix. */
struct slice coding_original(struct slice name);

/* Returns the coding in the set `available` (of 1 << coding) that Accept-Encoding prefers, or -1 if there is none.
 * Without the field, identity is preferred and the others are acceptable. If no available coding is acceptable,
 * identity is chosen, if it is available. */
int coding_choose(const struct request *request, unsigned available);

/* Returns whether Accept-Encoding names a coding, and does not refuse it. */
bool coding_accepted(const struct request *request, enum coding coding);

/* Returns whether it refuses identity. */
bool coding_refuses_identity(const struct request *request);

/* Does the same as coding_choose(), but of codings with equal weights prefers the one with the smallest size[CODINGS],
 * of those in the set in bytes. */
int coding_choose_smallest(const struct request *request, unsigned available, const uint64_t *size);

/* Returns those in the set `made`, of CODING_DCZ and CODING_DCB, that Accept-Encoding names with the greatest weight,
 * if that is not less than the weight of the coding `than`; else 0. */
unsigned coding_differences(const struct request *request, unsigned made, enum coding than);

#endif
