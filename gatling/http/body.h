/* body.h - a request body is read past and dropped: the connection stays in step (RFC 9112, sections 6 and 7). */
#ifndef GATLING_HTTP_BODY_H
#define GATLING_HTTP_BODY_H

#include "gatling/http/request.h"

enum { CHUNK_LINE_MAX = 256, TRAILER_MAX = 8 * 1024 }; /* bytes of a chunk's size line, of all trailers; more: 400 */

/* Where in a body we are. All zero: no body, or past its end. */
struct body {
	uint32_t left;  /* bytes to come: of the body, or of the chunk */
	uint32_t total; /* bytes of chunk data announced so far */
	uint16_t line;  /* bytes of the current size line or of all trailers */
	uint8_t state;
	uint8_t digits; /* of the chunk size */
};

void body_start(struct body *body, const struct request *request);

static inline bool body_pending(const struct body *body) { return body->state != 0; }

/* Reads past what there is of the body. The bytes consumed; what follows them, if !body_pending(), is the next request.
 * -400: the chunking is broken; -413: more than BODY_MAX. */
int body_skip(struct body *body, const char *buffer, size_t length);

#endif
