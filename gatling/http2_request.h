/* http2_request.h - a header block of HTTP/2 as a request (RFC 9113, section 8). */
#ifndef GATLING_HTTP2_REQUEST_H
#define GATLING_HTTP2_REQUEST_H

#include <nghttp2/nghttp2.h>

#include "gatling/request.h"

enum {
	HTTP2_LIST_MAX =
		HEAD_MAX,           /* bytes of the fields of a request, each 32 more than it has (section 6.5.2); more: 431 */
	HTTP2_FIELDS_MAX = 1000 /* fields that are decoded at all; more: ENHANCE_YOUR_CALM */
};

/* Section 4 of RFC 9218. */
struct priority {
	uint8_t urgency; /* 0 comes first, 7 last */
	bool incremental;
};
#define PRIORITY_DEFAULT ((struct priority){.urgency = 3, .incremental = false})

/* Changes what a Priority field, or the value of a PRIORITY_UPDATE, says; what cannot be understood says nothing. */
void priority_parse(struct slice value, struct priority *priority);

/* Decodes a block; all of it, whatever is wrong with it, so that the next can be decoded. *request refers to text
 * (HTTP2_TEXT bytes). trailers: of a request whose head has come; then only what is wrong is told.
 *    0: it is a request;
 *  > 0: the status to answer it with;
 *  < 0: the negative error: -PROTOCOL_ERROR of the stream, another of the connection. */
enum { HTTP2_TEXT = 2 * HTTP2_LIST_MAX + 64 };
int http2_request_decode(nghttp2_hd_inflater *inflater, const unsigned char *block, size_t length, bool trailers,
						 char *text, struct request *request, struct priority *priority);

#endif
