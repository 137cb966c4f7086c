/* request_fields.h - makes a request of the decoded fields of HTTP/2 (RFC 9113, section 8) or HTTP/3 (RFC 9114, section
 * 4), whose rules are the same. */
#ifndef GATLING_STREAMS_REQUEST_FIELDS_H
#define GATLING_STREAMS_REQUEST_FIELDS_H

#include "gatling/http/request.h"
#include "gatling/streams/priority.h"

enum {
	/* Bytes of the fields of a request, plus 32 for each field (RFC 9113, section 6.5.2). If there are more, or more
	 * than FIELDS_MAX fields, the status is 431. */
	REQUEST_LIST_MAX = HEAD_MAX,
	REQUEST_TEXT = 4 * REQUEST_LIST_MAX + 64,
	REQUEST_PSEUDO_FIELDS = 5,
	REQUEST_MALFORMED = -1
};

/* The caller sets the first members, the others are zero. */
struct request_fields {
	struct slice version; /* " HTTP/2.0", for the log */
	bool trailers;        /* they are trailer fields: then only errors are reported, and request->lines */
	bool passes;          /* requests may be passed on */
	bool begun;           /* the pseudo-fields have been checked */
	bool malformed;
	int status; /* the status to refuse it with, or 0 */
	struct request *request;
	struct priority *priority;
	char *text;
	size_t used;          /* bytes of text in use */
	char *lines, *cookie; /* the field lines of the request, and its Cookie line, which is appended to them */
	size_t lines_length, cookie_length;
	struct slice pseudo[REQUEST_PSEUDO_FIELDS];
	unsigned fields;
	size_t list;
};

/* Begins a request, which will refer to text (REQUEST_TEXT bytes). *priority is that of the request, if it has none. */
void request_fields_begin(struct request_fields *fields, struct request *request, struct priority *priority,
						  char *text);

/* Adds the next field, of which the first error determines the result; fields after it are not checked. Returns false
 * if there are too many. */
bool request_fields_add(struct request_fields *fields, struct slice name, struct slice value);

/* Ends the request. complete: all fields were decoded, and not too many. request->lines are the fields as lines of
 * HTTP/1.1, with one Cookie (RFC 9113, section 8.2.3): all of them if requests may be passed on, else Cookie and
 * Accept-Language. A CONNECT for a WebSocket (RFC 8441, RFC 9220) becomes a GET. Returns 0, the status to answer, or
 * REQUEST_MALFORMED. */
int request_fields_end(struct request_fields *fields, bool complete);

#endif
