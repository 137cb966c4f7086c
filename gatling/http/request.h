/* request.h - the head of an HTTP/1.1 request (RFC 9112), parsed into slices of the caller's buffer. A request owns no
 * memory. */
#ifndef GATLING_HTTP_REQUEST_H
#define GATLING_HTTP_REQUEST_H

#include <stdint.h>

#include "gatling/base/slice.h"

enum {
	HEAD_MAX = 16 * 1024,  /* bytes of a head, the empty line included; more: 431 */
	TARGET_MAX = 8 * 1024, /* bytes of a request target; more: 414 */
	METHOD_MAX = 32,       /* bytes of a method name; more: 501 */
	FIELDS_MAX = 100,      /* field lines of a head; more: 431 */
	EMPTY_LINES_MAX = 4,   /* empty lines before a request line (RFC 9112, section 2.2); more: 400 */
	BODY_MAX = 1024 * 1024 /* bytes of a body that is read and dropped; more: callers answer 413 */
};

enum method { METHOD_GET, METHOD_HEAD, METHOD_OPTIONS, METHOD_NOT_ALLOWED, METHOD_UNKNOWN };

#define BODY_LENGTH_MAX ((UINT64_C(1) << 45) - 1) /* bytes of a body, or a chunk, that is passed on; more: 413 */

/* The fields that the server uses; others are only checked. */
enum field_name {
	FIELD_ACCEPT_ENCODING,
	FIELD_AUTHORIZATION,
	FIELD_AVAILABLE_DICTIONARY,
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
	FIELD_WANT_REPR_DIGEST,
	FIELD_X_FORWARDED_FOR,
	FIELD_X_FORWARDED_PROTO,
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
	struct slice lines; /* the field lines as received, each with its CRLF; for HTTP/2, see http2_request_decode() */
	struct slice path;  /* of the target, still percent-encoded; "*" for OPTIONS * */
	struct slice query; /* with its '?'; absent if there is none */
	/* The authority of an absolute-form target, otherwise the Host field. Absent if there is neither, or Host is
	 * empty. */
	struct slice host;
	int minor;            /* 0 for HTTP/1.0, 1 for anything later */
	bool keep_alive;      /* the client allows the connection to persist */
	bool expect_continue; /* the client waits for a 100 before it sends the body */
	bool websocket;       /* HTTP/2: a CONNECT for a WebSocket (RFC 8441), converted to the GET of HTTP/1.1 */
	enum body_framing framing;
	uint64_t content_length;  /* with BODY_LENGTH; more than BODY_MAX is refused unless it is passed on */
	unsigned known, repeated; /* sets of 1 << name: the fields that came, and those that came more than once */
	struct slice failed;      /* the address of the upstream that could not answer it, for the log, or absent */
	unsigned fields;
	struct field field[FIELDS_MAX]; /* the known fields, in order */
};

/* Parses the head at the start of buffer. Returns
 *  > 0: its length in bytes, with leading empty lines and the final one; *request is filled in and refers to buffer;
 *    0: it is not complete, and correct so far;
 *  < 0: the negative status to answer before closing: -400 -411 -413 -414 -417 -431 -501 -505. request->line is as much
 *       of the request line as has arrived (may be empty). */
int request_parse(struct request *request, const char *buffer, size_t length);

/* Fill in a request whose head does not come as text (HTTP/2): first the method and the target, then each field, then
 * the end. The request refers to the slices, which the caller still owns. Values must consist of characters of the
 * class CHAR_TEXT. Return 0, or the negative status as above. line stays absent, minor is 1, and host is that of an
 * absolute-form target; the caller sets framing, and clears expect_continue without content. */
int request_begin(struct request *request, struct slice method, struct slice target);
int request_add(struct request *request, enum field_name name, struct slice value);
int request_end(struct request *request);

/* Returns the field with that name, ignoring case, or FIELD_OTHER. */
enum field_name request_field_name(struct slice name);

/* Returns whether a field with that name came. Most do not come: test this first. */
bool request_has(const struct request *request, enum field_name name);

/* Returns whether a field with that name came more than once. */
bool request_repeats(const struct request *request, enum field_name name);

/* Returns the value of the first field with that name, or an absent slice. */
struct slice request_field(const struct request *request, enum field_name name);

/* Takes lines off the front of *lines, which begins as request->lines, up to the next one with that name (in lower or
 * upper case), and returns whether there is one, with its value, trimmed. For fields that are not known, which few
 * requests are asked for; HTTP/2 and HTTP/3 keep those that is_asked_for() names (streams/request_fields.c). */
bool request_next_value(struct slice *lines, struct slice name, struct slice *value);

/* Returns whether no Sec-Fetch-Site says that another origin has made the client ask
 * (https://www.w3.org/TR/fetch-metadata/). */
bool request_of_this_origin(const struct request *request);

/* Returns whether a browser made from Chromium asks (https://wicg.github.io/ua-client-hints/), and whether any does for
 * a page to which a user goes. */
bool request_of_chromium(const struct request *request);
bool request_navigates(const struct request *request);

/* Returns a copy that does not refer to the caller's buffer, to be freed with free(), or NULL if memory runs out.
 * *size: bytes of memory that it takes. */
struct request *request_keep(const struct request *request, size_t *size);

/* Does the same, but copies only what is logged: the request line, the host, Referer and User-Agent. */
struct request *request_keep_logged(const struct request *request, size_t *size);

/* Parses the value of Content-Length (RFC 9110, section 8.6), also of a response. Returns 0, -400, or -413 if it is
 * over BODY_LENGTH_MAX. */
int content_length_parse(struct slice value, uint64_t *length);

/* Returns whether bytes that continue an unfinished line can be part of a head. This is a cheap test between two calls
 * of request_parse(), which refuses other protocols at once. */
bool request_plausible(const char *buffer, size_t length);

#endif
