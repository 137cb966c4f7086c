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
	BODY_MAX = 1024 * 1024 /* bytes of a body that are read and dropped; more: 413, which the callers say */
};

enum method { METHOD_GET, METHOD_HEAD, METHOD_OPTIONS, METHOD_NOT_ALLOWED, METHOD_UNKNOWN };

#define BODY_LENGTH_MAX ((UINT64_C(1) << 45) - 1) /* bytes of a body, or a chunk, that is passed on; more: 413 */

/* The fields that the server uses; all others are checked and dropped. */
enum field_name {
	FIELD_ACCEPT_ENCODING,
	FIELD_AUTHORIZATION,
	FIELD_CONNECTION,
	FIELD_CONTENT_LENGTH,
	FIELD_EXPECT,
	FIELD_FORWARDED,
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
	FIELD_X_FORWARDED_FOR,
	FIELD_OTHER
};

struct field {
	enum field_name name;
	struct slice value; /* trimmed */
};

enum body_framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED };

struct request {
	enum method method;
	struct slice method_name;
	struct slice line;  /* the request line without its CRLF, for the log */
	struct slice lines; /* the field lines as they came, each with its CRLF; with HTTP/2, see http2_request_decode() */
	struct slice path;  /* of the target, still percent-encoded; "*" for OPTIONS * */
	struct slice query; /* with its '?'; absent if there is none */
	/* The authority of an absolute-form target, else of Host. Absent without either; may be empty in HTTP/1.0. */
	struct slice host;
	int minor;            /* 0 for HTTP/1.0, 1 for anything later */
	bool keep_alive;      /* the client lets the connection persist */
	bool expect_continue; /* the client waits for a 100 before it sends the body */
	bool websocket;       /* HTTP/2: CONNECT for a WebSocket (RFC 8441), as the GET of HTTP/1.1 that it stands for */
	enum body_framing framing;
	uint64_t content_length;  /* with BODY_LENGTH; more than BODY_MAX is refused unless it is passed on */
	unsigned known, repeated; /* sets of the known fields that came once, and more than once; see request_has() */
	struct slice failed;      /* the address of the upstream that could not answer it, for the log; or absent */
	unsigned fields;
	struct field field[FIELDS_MAX]; /* the known ones, in order */
};

/* Parses the head at the start of buffer. Returns
 *  > 0: its length in bytes, with leading empty lines and the final one; *request is filled in and refers to buffer;
 *    0: it is not complete, and correct so far;
 *  < 0: the negative status to answer before closing: -400 -411 -413 -414 -417 -431 -501 -505. request->line is as much
 *       of the request line as has arrived (may be empty). */
int request_parse(struct request *request, const char *buffer, size_t length);

/* Fill in a request whose head does not come as text (HTTP/2): first the method and the target, then each field, then
 * the end. The request refers to the slices, which stay the caller's. A value must be all chars_text(). Return 0, or
 * the negative status as above. line stays absent, minor is 1, host is that of an absolute target. */
int request_begin(struct request *request, struct slice method, struct slice target);
int request_add(struct request *request, enum field_name name, struct slice value);
int request_end(struct request *request);

/* Returns which field has that name, in letters of any case. */
enum field_name request_field_name(struct slice name);

/* Returns whether a field with that name came. Most did not: ask this first. */
static inline bool request_has(const struct request *request, enum field_name name) {
	return request->known >> name & 1;
}

/* Returns whether it came more than once. */
static inline bool request_repeats(const struct request *request, enum field_name name) {
	return request->repeated >> name & 1;
}

/* Returns the value of the first field with that name, or an absent slice. */
struct slice request_field(const struct request *request, enum field_name name);

/* Returns a copy that does not refer to the caller's buffer, to be freed with free(), and writes the bytes of memory
 * that it takes to *size. NULL: ENOMEM. */
struct request *request_keep(const struct request *request, size_t *size);

/* The same with only what is logged: its line, its host, Referer and User-Agent. */
struct request *request_keep_logged(const struct request *request, size_t *size);

/* Returns whether bytes that continue a head without ending a line may become part of a request. This is a cheap test
 * between two calls of request_parse(), with which other protocols are refused at once. */
bool request_plausible(const char *buffer, size_t length);

#endif
