/* body.h - finds the content and the end of HTTP/1.1 bodies (RFC 9112, sections 6 and 7). */
#ifndef GATLING_HTTP_BODY_H
#define GATLING_HTTP_BODY_H

#include "gatling/http/request.h"

enum {
	CHUNK_LINE_MAX = 256,  /* bytes of the size line of a chunk without its CRLF, */
	TRAILER_MAX = 8 * 1024 /* and of a trailer section; more: 400 */
};

/* A position in a body. All zero: there is no body, or it has ended. */
struct body {
	uint64_t left : 45; /* bytes of the body, or of the chunk, that are still to come */
	uint64_t state : 5;
	uint64_t line : 14;                /* bytes of the current size line, or of the trailer section, so far */
	uint32_t allowed;                  /* bytes of chunks that may still be announced, or BODY_UNLIMITED */
} __attribute__((packed, aligned(4))); /* packed, since each connection has one */

#define BODY_UNLIMITED UINT32_MAX

/* Start a body. body_start() is for one that is dropped: chunks of more than BODY_MAX bytes in all are refused.
 * body_start_any() is for one of any length. */
void body_start(struct body *body, const struct request *request);
void body_start_any(struct body *body, enum body_framing framing, uint64_t content_length);

bool body_pending(const struct body *body);

/* Skips as much of the body as is in buffer. Returns the number of bytes skipped; if !body_pending() then, the next
 * request follows them. Returns -400 if the chunks are malformed, or -413 if they are longer than is allowed. */
int body_skip(struct body *body, const char *buffer, size_t length);

/* Does the same, but stops after the first piece of content, and before a trailer section. *content is the piece, a
 * slice of buffer, or empty. */
int body_read(struct body *body, const char *buffer, size_t length, struct slice *content);

/* body_rest() returns how many bytes of a body of known length are still to come, or 0 if the length is unknown.
 * body_take() counts up to that many bytes as read, without seeing them. */
uint64_t body_rest(const struct body *body);
void body_take(struct body *body, uint64_t length);

/* Returns whether the next byte belongs to the trailer section (RFC 9112, section 7.1.2) or the empty line at its
 * end. */
bool body_in_trailers(const struct body *body);

#endif
