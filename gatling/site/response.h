/* response.h - a response: what it is, its field lines and its content, whatever carries them. */
#ifndef GATLING_SITE_RESPONSE_H
#define GATLING_SITE_RESPONSE_H

#include "gatling/base/job.h"
#include "gatling/http/range.h"
#include "gatling/http/request.h"
#include "gatling/site/representation.h"
#include "io/iob.h"

enum { LOCATION_MAX = 4 * TARGET_MAX, BOUNDARY_LENGTH = 24 };

/* Content that is made while it is sent. */
struct generated_content {
	iob_fill *fill;
	iob_release *release;
	void *owner; /* goes to whoever takes the response; NULL: there is none */
	uint64_t length;
	size_t memory;    /* bytes that the owner takes */
	const char *type; /* the value of Content-Type */
	enum coding coding;
};

struct response {
	int status; /* 0: the answer is not known yet */
	/* Status 0: what has to be waited for. Then the request is to be answered anew. */
	struct job *job;
	/* 200, 206, 304, 416 and the pages of the site for errors: the representation, with one reference that goes to
	 * whoever takes the response; else NULL */
	struct representation *representation;
	/* 206: the parts of it, in order */
	int ranges;
	struct range range[RANGES_MAX];
	char boundary[BOUNDARY_LENGTH]; /* between several of them, see response_fields() */
	struct generated_content source;
	struct slice page; /* HTML that is always there; absent: the status itself, if there is nothing else */
	/* These are in the answerer's buffers until the next answer. */
	struct slice location; /* 3xx: where to */
	struct slice lines;    /* further fields, each a line with its CRLF */
	struct slice user;     /* who has given a password, absent: nobody */
};

/* An answer that is nothing but a status. */
void response_status(struct response *response, int status);

/* Bytes of the field lines of any response. */
enum { RESPONSE_FIELDS_MAX = 2 * HEADER_OCTETS_MAX + LOCATION_MAX + 2048 };

/* And of this one at most. */
size_t response_fields_room(const struct response *response);

/* The status line of HTTP/1.1, with its CRLF, for any status that answer() and request_parse() can come to. */
struct slice response_status_line(int status);

/* Writes the fields but for Server and Date, each a line with its CRLF, to out (response_fields_room() bytes), and the
 * length of the content that a GET gets to *content_length. The bytes written; 0: there is no randomness for the
 * boundary between parts. */
size_t response_fields(struct response *response, char *out, uint64_t *content_length);

/* The content as bytes in memory, if it is a whole file there; else absent. */
struct slice response_in_memory(const struct response *response);

/* Appends the content to the batch, after response_fields(), and takes file and source over, also when it fails. 0, or
 * -1 (ENOMEM). */
int response_content(iob *batch, struct response *response);

/* Gives up file and source. */
void response_drop(struct response *response);

/* The methods that are allowed, for 204 and 405. */
extern const struct slice response_allow;

#endif
