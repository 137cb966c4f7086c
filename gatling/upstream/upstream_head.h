/* upstream_head.h - the heads of messages between this server and an upstream: those of HTTP/1.1 (RFC 9112), and
 * responses of programs (RFC 3875, section 6).
 *
 * Fields for a single connection are not passed on (RFC 9110, section 7.6.1). Via is not added: to both sides this
 * server is the origin of the messages. */
#ifndef GATLING_UPSTREAM_UPSTREAM_HEAD_H
#define GATLING_UPSTREAM_UPSTREAM_HEAD_H

#include "gatling/client/arrival.h"
#include "gatling/http/body.h"
#include "gatling/http/host.h"
#include "gatling/http/request.h"
#include "gatling/upstream/upstream_limits.h"

enum {
	UPSTREAM_HEAD_MAX = 32 * 1024, /* bytes of the head of a response, */
	UPSTREAM_FIELDS_MAX = 200,     /* and its fields; more: 502 */
	/* Bytes of its lines that are passed on: "a:b\n" becomes "a: b\r\n" or, with upstream_coding.h, "a: W/b\r\n". */
	UPSTREAM_LINES_MAX = UPSTREAM_HEAD_MAX + 4 * UPSTREAM_FIELDS_MAX + 64,
	UPSTREAM_TRAILERS_MAX = HEAD_MAX + FIELDS_MAX,
	/* Bytes of the head of a request. */
	UPSTREAM_REQUEST_MAX = 2 * HEAD_MAX + TARGET_MAX + 3 * HOST_MAX + 4 * PEER_MAX + 1024
};

enum {
	SCRIPT_ROOT_MAX = 4096,            /* bytes of upstream_script.root, which includes the path of the site */
	LOCATION_TEXT_MAX = 4 * TARGET_MAX /* bytes of upstream_request.target */
};

/* The paths that a program is given (RFC 3875, section 4.1), decoded. */
struct upstream_script {
	struct slice root; /* the directory of the site, outside of any chroot(2), without '/' at its end */
	struct slice name; /* the path of the script, or another one that leads to the program; may be empty */
	struct slice info; /* the path after it; may be empty */
	bool is_file;      /* the script is a file below the root */
};

/* A request to be passed on. */
struct upstream_request {
	const struct request *request;
	const struct arrival *arrival; /* a trusted proxy's fields are passed on as well */
	struct slice target;           /* path and query, percent-encoded; programs get only the query from it */
	struct slice host;             /* the field Host; not for a program */
	bool upgrades;                 /* upstream_upgrades(); not for a program */
	bool content_first; /* nothing is sent before content has come, or its end: until then it may not be valid */
	struct slice user;  /* the authenticated user, or absent */
	const struct upstream_script *script; /* only for a program */
	const struct upstream_limits *limits;
	struct slice site; /* whose rule passes it on: the path of its directory, "" for the root */
};

struct upstream_field {
	struct slice name, value;
};

/* Writes the fields of a request that are passed on to fields (FIELDS_MAX of them). Returns how many there are. */
unsigned upstream_fields(const struct upstream_request *request, struct upstream_field *fields);

/* Returns whether the client requests WebSocket (RFC 6455), the only upgrade that is passed on. */
bool upstream_upgrades(const struct request *request);

/* Returns the scheme that the client uses, which a trusted proxy may send in X-Forwarded-Proto. */
struct slice upstream_scheme(const struct upstream_request *request);

/* Writes the head of a request to out (UPSTREAM_REQUEST_MAX bytes). Returns its length.
 *
 * X-Forwarded-For, -Proto, -Host, X-Real-IP and Forwarded (RFC 7239) are written by this server, and replace those of
 * the client. The values of a trusted proxy are kept, and the address of the proxy is appended to its lists; X-Real-IP
 * is the client alone. Other fields that only proxies write, such as True-Client-IP and all of X-Forwarded-*, are
 * passed on from proxies that are trusted with X-Forwarded-For, and from nobody else. Fields with '_' in their names
 * are dropped, since applications cannot tell them from others with '-' (RFC 3875, section 4.1.18). Proxy is dropped,
 * since it would become HTTP_PROXY. Expect is written by this server, if there is content to wait for. */
size_t upstream_request_head(char *out, const struct upstream_request *request);

/* Writes the fields of a trailer section that are passed on to out (UPSTREAM_TRAILERS_MAX bytes), in the form of
 * hpack_fields(). The section comes from body_read() or http2_request_decode(). Returns the length. At most FIELDS_MAX
 * fields are passed on, and none about framing, coding, caching, routing, conditions or the sender (RFC 9110, section
 * 6.5.1), nor those that only proxies write, whoever sends them. */
size_t upstream_trailers(struct slice section, char *out);

struct upstream_response {
	int status; /* 100 to 999 */
	struct slice reason;
	size_t lines; /* bytes of the field lines that are passed on */
	enum body_framing framing;
	bool until_close;        /* the body ends with the connection, and has no other framing */
	uint64_t content_length; /* with BODY_LENGTH */
	bool keep_alive;         /* the connection can be used again */
};

/* Parses the head at the start of buffer. head_only: the response is to a HEAD. Writes the field lines for the client,
 * in the form of hpack_fields(), to lines (UPSTREAM_LINES_MAX bytes). Upgrade, Date and Server are left out, since the
 * server writes its own, and so is Content-Length if content of that length follows. Returns the length of the head in
 * bytes, and response->reason refers to buffer; 0 if it is incomplete, and correct so far; or -1 if it is malformed,
 * too long, or its framing is ambiguous. */
int upstream_response_parse(struct upstream_response *response, const char *buffer, size_t length, bool head_only,
							char *lines);

/* Does the same for the response of a program. Its lines may end with LF alone, and its status is in the field Status;
 * without this field it is 200, or 302 with Location. */
int upstream_cgi_response_parse(struct upstream_response *response, const char *buffer, size_t length, bool head_only,
								char *lines);

/* Removes the next field from the front of lines that one of these functions has written. Returns false if there is
 * none. */
bool upstream_next_field(struct slice *lines, struct upstream_field *field);

#endif
