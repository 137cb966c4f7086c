/* upstream_cgi.h - requests for programs, over FastCGI (specification 1.0) and SCGI, as variables (RFC 3875, section
 * 4.1). */
#ifndef GATLING_UPSTREAM_UPSTREAM_CGI_H
#define GATLING_UPSTREAM_UPSTREAM_CGI_H

#include "gatling/upstream/upstream_head.h"

enum {
	FCGI_HEADER = 8,          /* bytes of the header of a record */
	FCGI_CONTENT_MAX = 65535, /* bytes of the content of a record */
	FCGI_LENGTH_ROOM = 48     /* bytes at the end of a head that are reserved for fcgi_set_length() */
};

/* The maximum size of the head of a request. Each field takes five more bytes for its name and eight for lengths, and
 * the path and the query are repeated. */
enum {
	UPSTREAM_CGI_MAX =
		2 * HEAD_MAX + FIELDS_MAX * 16 + 2 * LOCATION_TEXT_MAX + 6 * TARGET_MAX + 4 * SCRIPT_ROOT_MAX + 4096
};

/* Write the head of a request to out (UPSTREAM_CGI_MAX bytes); with FastCGI also its end, if it has no content. Return
 * the length. */
size_t upstream_fcgi_head(char *out, const struct upstream_request *request);
size_t upstream_scgi_head(char *out, const struct upstream_request *request);

/* Adds the length of the content to the head, of head_length bytes, of a request with BODY_CHUNKED. If it is not known,
 * adds that the content is chunked. */
void fcgi_set_length(char *head, size_t head_length, bool known, uint64_t content_length);

/* Writes the header of a record with length bytes of the request's content (0: its end) to out (FCGI_HEADER bytes). */
void fcgi_put_header(char *out, size_t length);

/* How far a response in records has been read. All zero: nothing. */
struct fcgi_records {
	uint8_t header[FCGI_HEADER], end[FCGI_HEADER];
	unsigned have, end_have;   /* bytes of header and end that have come */
	unsigned content, padding; /* bytes of the record that are still to come */
	bool ended;                /* the last record has come; bytes after it are dropped */
	size_t complaint_length;   /* bytes of complaint, */
	char complaint[256];       /* which the program has written to its standard error, and are not reported yet */
	size_t complained;         /* bytes of its standard error in all */
};

enum { FCGI_COMPLAINTS_MAX = 4096 }; /* bytes of a request's standard error that are reported */

/* Unpacks the records in bytes, so that only their content for the response is left at the start of bytes. Returns its
 * length, or -1 if the records are malformed. Calls complain(context, line) for each line of the program's standard
 * error. */
ssize_t fcgi_read(struct fcgi_records *records, char *bytes, size_t length,
				  void (*complain)(void *context, struct slice line), void *context);

/* Reports the rest of the program's standard error. */
void fcgi_finish(struct fcgi_records *records, void (*complain)(void *context, struct slice line), void *context);

/* records->ended: returns whether the program has refused the request because it has too much to do. */
bool fcgi_is_overloaded(const struct fcgi_records *records);

#endif
