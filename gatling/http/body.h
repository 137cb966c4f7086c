/* body.h - finds the content, and the end, of bodies of HTTP/1.1 (RFC 9112, sections 6 and 7). */
#ifndef GATLING_HTTP_BODY_H
#define GATLING_HTTP_BODY_H

#include "gatling/http/request.h"

enum {
	CHUNK_LINE_MAX = 256,  /* bytes of the size line of a chunk, without its end, */
	TRAILER_MAX = 8 * 1024 /* and of a trailer section; more: 400 */
};

/* A position in a body. All zero: there is no body, or it has ended. */
struct body {
	uint64_t left : 45; /* bytes to come of the body, or of the chunk */
	uint64_t state : 5;
	uint64_t line : 14;                /* bytes of the current size line or of the trailer section */
	uint32_t allowed;                  /* bytes of chunks that may still be announced; BODY_UNLIMITED */
} __attribute__((packed, aligned(4))); /* each connection has one */

#define BODY_UNLIMITED UINT32_MAX

/* Begins with a body of at most BODY_MAX bytes, which is to be dropped; with one of any length. */
void body_start(struct body *body, const struct request *request);
void body_start_any(struct body *body, enum body_framing framing, uint64_t content_length);

static inline bool body_pending(const struct body *body) { return body->state != 0; }

/* Skips as much of the body as the buffer has. Returns the bytes skipped; if !body_pending(), the next request follows
 * them. -400: the chunking is broken; -413: more than is allowed. */
int body_skip(struct body *body, const char *buffer, size_t length);

/* Does the same as far as the end of the first piece of content, if the buffer has any, and to a trailer section. */
int body_read(struct body *body, const char *buffer, size_t length, struct slice *content);

/* Returns how many bytes of a body of known length are to come; 0: it is not known. body_take() takes up to so many
 * without a look at them. */
uint64_t body_rest(const struct body *body);
void body_take(struct body *body, uint64_t length);

/* Returns whether what body_read() takes next is the trailer section (RFC 9112, section 7.1.2), with the empty line at
 * its end. */
bool body_in_trailers(const struct body *body);

#endif
