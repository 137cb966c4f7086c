/* upstream_cgi.h - requests as programs get them, over FastCGI (its specification, 1.0) and SCGI: a name and a value
 * for all that is known of one (RFC 3875, section 4.1). */
#ifndef GATLING_UPSTREAM_UPSTREAM_CGI_H
#define GATLING_UPSTREAM_UPSTREAM_CGI_H

#include "gatling/upstream/upstream_head.h"

enum {
	FCGI_HEADER = 8,          /* bytes of the header of a record */
	FCGI_CONTENT_MAX = 65535, /* bytes of its content */
	FCGI_LENGTH_ROOM = 48     /* bytes at the end of a head that are for fcgi_set_length() */
};

/* The most bytes that a request begins with: each field with five bytes more in its name and eight of lengths, the path
 * and the query a few times. */
enum {
	UPSTREAM_CGI_MAX =
		2 * HEAD_MAX + FIELDS_MAX * 16 + 2 * LOCATION_TEXT_MAX + 6 * TARGET_MAX + 4 * SCRIPT_ROOT_MAX + 4096
};

/* Writes the beginning of a request, and with FastCGI, if it has no content, its end, to out (UPSTREAM_CGI_MAX bytes).
 * Returns its length. */
size_t upstream_fcgi_head(char *out, const struct upstream_request *request);
size_t upstream_scgi_head(char *out, const struct upstream_request *request);

/* Says how long the content is of a request with BODY_CHUNKED, after its head, of so many bytes, has been written.
 * known: else nothing is said but that it comes in chunks, and its end is where it ends. */
void fcgi_set_length(char *head, size_t head_length, bool known, uint64_t content_length);

/* Writes the header of a record with content of the request (length 0: its end) to out (FCGI_HEADER bytes). */
void fcgi_put_header(char *out, size_t length);

/* The response in records. All zero: at its beginning. */
struct fcgi_records {
	uint8_t header[FCGI_HEADER], end[FCGI_HEADER];
	unsigned have, end_have;   /* bytes of these that have come */
	unsigned content, padding; /* bytes to come */
	bool ended;                /* the last record has come; what follows it is dropped */
	size_t complaint_length;   /* bytes of what the program has written to its standard error, */
	char complaint[256];       /* that are not reported yet */
	size_t complained;         /* and that are */
};

enum { FCGI_COMPLAINTS_MAX = 4096 }; /* bytes of the standard error of a request that are reported */

/* Takes the records apart, and leaves only what they carry of the response, at the start of bytes. Returns its length;
 * -1: they are malformed. Calls complain(context, line) for each line of its standard error. */
ssize_t fcgi_read(struct fcgi_records *records, char *bytes, size_t length,
				  void (*complain)(void *context, struct slice line), void *context);

/* Reports what is left of its standard error. */
void fcgi_finish(struct fcgi_records *records, void (*complain)(void *context, struct slice line), void *context);

/* records->ended: returns whether the program refuses, because it has too much to do. */
bool fcgi_is_overloaded(const struct fcgi_records *records);

#endif
