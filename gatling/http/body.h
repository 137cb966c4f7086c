/* body.h - skips request bodies, so that the connection stays in step (RFC 9112, sections 6 and 7). */
#ifndef GATLING_HTTP_BODY_H
#define GATLING_HTTP_BODY_H

#include "gatling/http/request.h"

enum {
	CHUNK_LINE_MAX = 256,
	TRAILER_MAX = 8 * 1024
}; /* bytes of the size line of a chunk, and of all trailers; more: 400 */

/* A position in a body. All zero: there is no body, or it has ended. */
struct body {
	uint32_t left;  /* bytes to come of the body, or of the chunk */
	uint32_t total; /* bytes of chunk data announced so far */
	uint16_t line;  /* bytes of the current size line or of all trailers */
	uint8_t state;
};

void body_start(struct body *body, const struct request *request);

static inline bool body_pending(const struct body *body) { return body->state != 0; }

/* Skips as much of the body as the buffer has. Returns the bytes skipped; if !body_pending(), the next request follows
 * them. -400: the chunking is broken; -413: more than BODY_MAX. */
int body_skip(struct body *body, const char *buffer, size_t length);

#endif
