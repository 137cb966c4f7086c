/* response.h - a response with its field lines and its content, for HTTP/1.1 and HTTP/2. */
#ifndef GATLING_SITE_RESPONSE_H
#define GATLING_SITE_RESPONSE_H

#include "gatling/base/job.h"
#include "gatling/media/media_type.h"
#include "gatling/http/range.h"
#include "gatling/http/request.h"
#include "gatling/site/cache/representation.h"
#include "gatling/upstream/upstream_address.h"
#include "gatling/upstream/upstream_head.h"
#include "io/iob.h"

/* Bytes of the fields that all responses have, as lines and as a header block: Server, Date, and over TLS perhaps
 * Strict-Transport-Security and Alt-Svc. */
enum { RESPONSE_COMMON_LINES = 160, RESPONSE_COMMON_BLOCK = 256 };

enum { LOCATION_MAX = 4 * TARGET_MAX, BOUNDARY_LENGTH = 24 };

struct path_limits; /* rules/limit_rules.h */

/* Content that is generated while it is sent. */
struct generated_content {
	iob_fill *fill;
	iob_release *release;
	void *owner; /* belongs to the response, see response_content(); NULL: no such content */
	uint64_t length;
	size_t memory;    /* bytes of memory that the owner takes */
	const char *type; /* the value of Content-Type */
	enum coding coding;
};

/* A page for a status, from string literals. `more` follows the heading. */
#define RESPONSE_PAGE(title, heading, more)                                                                            \
	"<!doctype html>\n<html lang=en>\n<meta name=viewport content=width=device-width>\n"                               \
	"<meta name=color-scheme content=\"light dark\">\n<title>" title "</title>\n<main>\n<h1>" heading "</h1>\n" more   \
	"</main>\n"

struct response {
	/* 0 with upstream: the request is passed on there, with location as its target. 0 without: it is answered again
	 * when the job has ended. */
	int status;
	struct job *job;
	const struct upstream_target *upstream; /* valid until the next answer() */
	struct upstream_script script;          /* for an upstream that runs programs; valid as long */
	/* With 200, 206, 304, 416 (only its size is sent) and the error pages of the site: the representation, to which the
	 * response has a reference; else NULL. */
	struct representation *representation;
	bool offered; /* the client gets the representation's offered fields */
	/* with 206: the parts to send, in order */
	int ranges;
	struct range range[RANGES_MAX];
	char boundary[BOUNDARY_LENGTH]; /* between several parts, see response_fields() */
	struct generated_content source;
	const char *page_type; /* of page; NULL: HTML */
	bool varies;           /* without a representation: it depends on Accept-Encoding */
	/* These are valid until the next answer(). */
	struct slice page;     /* absent, and without other content: the page of the status is sent */
	struct slice location; /* of 3xx */
	struct slice lines; /* further field lines, each with its CRLF; with upstream: as header_set_added() writes them */
	struct slice hints; /* with upstream: field lines that the client may get before its answer, with 103; or empty */
	struct slice user;  /* who is authenticated, or with 401 and 429, who is not; or absent */
	/* Of the path: of the owner of the site; NULL: none but the operator's. answer() sets it, response_status() does
	 * not. */
	const struct path_limits *limits;
	struct slice site; /* the path of the directory of the site, "" for the root; absent: none. answer() sets it, too */
};

/* Sets the status, and no content of its own; nothing is released. With 429 and 503, lines has a Retry-After. */
enum { RETRY_LINE_MAX = 32 };
void response_status(struct response *response, int status);

/* Returns the status for an errno with which a file could not be opened. */
int response_status_of(int error);

/* Limit of the bytes of field lines of any response: the owner's, a Location, and those that the server writes for the
 * representation and for the status. */
enum {
	RESPONSE_STATUS_FIELDS_MAX = 1024,
	RESPONSE_FIELDS_MAX =
		2 * HEADER_OCTETS_MAX + LOCATION_MAX + REPRESENTATION_FIELDS_MAX + MEDIA_TYPE_MAX + RESPONSE_STATUS_FIELDS_MAX
};

/* Returns that limit for this response. */
size_t response_fields_room(const struct response *response);

/* Returns the status line of HTTP/1.1, with its CRLF, for any status of answer() and request_parse(). */
struct slice response_status_line(int status);

/* Writes all fields except Server and Date, each a line with its CRLF, to out (response_fields_room() bytes), and the
 * length of the content of a GET to *content_length. Returns the bytes written, or 0 without randomness for the
 * boundary. */
size_t response_fields(struct response *response, char *out, uint64_t *content_length);

/* Returns whether it has only the fields of its representation, whose header block may be ready. */
bool response_has_ready_block(const struct response *response);

/* Appends a response of HTTP/1.1 to the batch, which takes over the representation and the source, even if this fails:
 * the status line, these lines, those of response_fields(), and unless head_only the content, whose length becomes
 * *content_length. Returns false without memory, or randomness; then the batch cannot be sent. */
struct response_lines {
	struct slice common, more;
};
bool response_write(iob *batch, struct response *response, struct response_lines lines, bool head_only,
					uint64_t *content_length);

/* Returns the content if it is a whole file in memory; else an absent slice. */
struct slice response_in_memory(const struct response *response);

/* Appends the content to the batch, which takes over the representation and the source, even if this fails. Call it
 * after response_fields(). Returns 0, or -1 with ENOMEM. */
int response_content(iob *batch, struct response *response);

/* Releases the representation and the source. */
void response_drop(struct response *response);

/* The allowed methods, for 204 and 405. */
extern const struct slice response_allow;

#endif
