/* upstream_head.h - the heads of the messages between this server and an upstream: those of HTTP/1.1 (RFC 9112), and
 * responses of programs (RFC 3875, section 6).
 *
 * Fields that are for one connection are not passed on (RFC 9110, section 7.6.1). Via is not added: to both sides this
 * server is the origin. */
#ifndef GATLING_UPSTREAM_UPSTREAM_HEAD_H
#define GATLING_UPSTREAM_UPSTREAM_HEAD_H

#include "gatling/client/forwarded.h"
#include "gatling/http/body.h"
#include "gatling/http/host.h"
#include "gatling/http/request.h"

enum {
	UPSTREAM_HEAD_MAX = 32 * 1024, /* bytes of the head of a response, and */
	UPSTREAM_FIELDS_MAX = 200,     /* fields of it; more: 502 */
	/* Of the lines that are passed on of it: "a:b\n" becomes "a: b\r\n" or, with upstream_gzip.h, "a: W/b\r\n". */
	UPSTREAM_LINES_MAX = UPSTREAM_HEAD_MAX + 4 * UPSTREAM_FIELDS_MAX + 64,
	UPSTREAM_TRAILERS_MAX = HEAD_MAX + FIELDS_MAX,
	/* Bytes of the head of a request. */
	UPSTREAM_REQUEST_MAX = 2 * HEAD_MAX + TARGET_MAX + 3 * HOST_MAX + 3 * PEER_MAX + 1024
};

enum {
	SCRIPT_ROOT_MAX = 4096,            /* bytes of upstream_script.root, which is a path with that of the site */
	LOCATION_TEXT_MAX = 4 * TARGET_MAX /* and of upstream_request.target */
};

/* What a program is told of where it is (RFC 3875, section 4.1). Paths are decoded. */
struct upstream_script {
	struct slice root; /* the directory of the site, outside of any chroot(2), without '/' at its end */
	struct slice name; /* the path of the script, or what else leads to the program; may be empty */
	struct slice info; /* the path behind it; may be empty */
	bool is_file;      /* the script is a file below the root */
};

/* A request as it is passed on. */
struct upstream_request {
	const struct request *request;
	struct slice target; /* path and query, percent-encoded; for a program only the query counts */
	struct slice host;   /* as the client has named it, or absent */
	const struct peer *client;
	enum forwarding forwarding;           /* a trusted proxy has passed it on: */
	struct peer proxy;                    /* this one, whose fields are passed on as well */
	unsigned port;                        /* that the client has come to; 0: none */
	bool secure;                          /* the client speaks TLS */
	struct slice user;                    /* who was authenticated, or absent */
	const struct upstream_script *script; /* for a program */
};

struct upstream_field {
	struct slice name, value;
};

/* Writes the fields of a request that are passed on to fields (FIELDS_MAX of them). Returns how many there are. */
unsigned upstream_fields(const struct request *request, struct upstream_field *fields);

/* Returns whether the client asks for WebSocket (RFC 6455), the only protocol that is changed to. */
bool upstream_upgrades(const struct request *request);

/* Returns the scheme that the client speaks, which a trusted proxy says in X-Forwarded-Proto. */
struct slice upstream_scheme(const struct upstream_request *request);

/* Writes the head of a request to out (UPSTREAM_REQUEST_MAX bytes). Returns its length.
 *
 * X-Forwarded-For, -Proto, -Host and Forwarded (RFC 7239) say what this server believes, and replace what the client
 * has sent of them. What a trusted proxy says stays, and its list gets the address of the proxy. Names with '_' are
 * dropped: for an application they are the same as others with '-' (RFC 3875, section 4.1.18). So is Proxy, which would
 * become HTTP_PROXY. */
size_t upstream_request_head(char *out, const struct upstream_request *request);

/* Writes those fields of a trailer section, which body_read() or http2_request_decode() has taken, that are passed on
 * to out (UPSTREAM_TRAILERS_MAX bytes), as hpack_fields() takes them. Returns their length. At most FIELDS_MAX are, and
 * none that says how a message is framed, coded, cached or routed, on which condition it applies, or who sends it (RFC
 * 9110, section 6.5.1). */
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

/* Parses the head at the start of buffer; head_only: the answer to a HEAD. Writes the field lines for the client, as
 * hpack_fields() takes them, to lines (UPSTREAM_LINES_MAX bytes). Upgrade, Date and Server are left out: the server
 * says them itself. Content-Length is left out if content of that length follows. Returns > 0: its length in bytes;
 * response->reason refers to buffer; 0: it is not complete, and correct so far; -1: it is malformed, too long, or its
 * framing is ambiguous. */
int upstream_response_parse(struct upstream_response *response, const char *buffer, size_t length, bool head_only,
							char *lines);

/* The same for the response of a program, whose lines may end with LF alone, and whose status is in the field Status:
 * without, it is 200, or 302 with Location. */
int upstream_cgi_response_parse(struct upstream_response *response, const char *buffer, size_t length, bool head_only,
								char *lines);

/* Takes the next field off lines that one of these functions has written. Returns false: there is none. */
bool upstream_next_field(struct slice *lines, struct upstream_field *field);

#endif
