/* request.h - the head of an HTTP/1.1 request (RFC 9112), parsed into slices of the caller's buffer. Owns no memory. */
#ifndef GATLING_HTTP_REQUEST_H
#define GATLING_HTTP_REQUEST_H

#include <stdint.h>

#include "gatling/base/slice.h"

enum {
	HEAD_MAX = 16 * 1024,  /* bytes of a head, the empty line included; more: 431 */
	TARGET_MAX = 8 * 1024, /* bytes of a request target; more: 414 */
	METHOD_MAX = 32,       /* bytes of a method name; more: 501 */
	FIELDS_MAX = 100,      /* field lines of a head; more: 431 */
	EMPTY_LINES_MAX = 4,   /* before a request line (RFC 9112, section 2.2); more: 400 */
	BODY_MAX = 1024 * 1024 /* bytes of a body that are read and dropped; more: 413 */
};

enum method { METHOD_GET, METHOD_HEAD, METHOD_OPTIONS, METHOD_NOT_ALLOWED, METHOD_UNKNOWN };

/* The fields that mean something here; all others are checked and forgotten. */
enum field_name {
	FIELD_ACCEPT_ENCODING,
	FIELD_AUTHORIZATION,
	FIELD_CONNECTION,
	FIELD_CONTENT_LENGTH,
	FIELD_EXPECT,
	FIELD_HOST,
	FIELD_IF_MATCH,
	FIELD_IF_MODIFIED_SINCE,
	FIELD_IF_NONE_MATCH,
	FIELD_IF_RANGE,
	FIELD_IF_UNMODIFIED_SINCE,
	FIELD_RANGE,
	FIELD_REFERER,
	FIELD_TRANSFER_ENCODING,
	FIELD_USER_AGENT,
	FIELD_OTHER
};

struct field {
	enum field_name name;
	struct slice value; /* trimmed */
};

enum body_framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED };

struct request {
	enum method method;
	struct slice line;  /* the request line without its CRLF, for the log */
	struct slice path;  /* of the target, still percent-encoded; "*" for OPTIONS * */
	struct slice query; /* with its '?'; absent when there is none */
	struct slice
		host;  /* authority asked for: from an absolute-form target, else Host; absent without, or empty, on 1.0 */
	int minor; /* 0 for HTTP/1.0, 1 for anything later */
	bool keep_alive;      /* the client lets the connection persist */
	bool expect_continue; /* it waits for a 100 before it sends the body */
	enum body_framing framing;
	uint64_t content_length;  /* with BODY_LENGTH */
	unsigned known, repeated; /* sets of the known fields that came, and that came more than once; see request_has() */
	unsigned fields;
	struct field field[FIELDS_MAX]; /* the known ones, in order */
};

/* Parses a head at the start of buffer.
 *  > 0: its length in bytes, leading empty lines and the final one included; *request is filled and refers to buffer;
 *    0: it is not complete, and nothing is wrong so far;
 *  < 0: the negative status of the error to answer before closing: -400 -411 -413 -414 -417 -431 -501 -505.
 *       request->line holds what there is of the request line (may be empty). */
int request_parse(struct request *request, const char *buffer, size_t length);

/* The same for a head that does not come as text (HTTP/2): first the method and the target, then each field, then the
 * end. All slices stay the caller's, and are referred to. Each 0, or the negative status as above; line is not filled,
 * minor is 1, host is what an absolute target says. */
int request_begin(struct request *request, struct slice method, struct slice target);
int request_add(struct request *request, enum field_name name, struct slice value); /* which chars_text() is */
int request_end(struct request *request);

/* Which field that is, in any case of letters. */
enum field_name request_field_name(struct slice name);

/* Whether a field with that name came: most do not, so this is asked first. */
static inline bool request_has(const struct request *request, enum field_name name) {
	return request->known >> name & 1;
}

/* The first field with that name, or an absent slice. */
struct slice request_field(const struct request *request, enum field_name name);

/* A copy that does not refer to the caller's buffer, to be freed with free(); *size: bytes of memory that it takes.
 * NULL: ENOMEM. */
struct request *request_keep(const struct request *request, size_t *size);

/* Whether n bytes that continue a head without ending a line may yet become part of a request; a cheap test
 * between two calls of request_parse(), so that what is not HTTP is refused at once. */
bool request_plausible(const char *buffer, size_t length);

#endif
