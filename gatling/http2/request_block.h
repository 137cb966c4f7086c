/* request_block.h - a header block of HTTP/2 as a request (RFC 9113, section 8). */
#ifndef GATLING_HTTP2_REQUEST_BLOCK_H
#define GATLING_HTTP2_REQUEST_BLOCK_H

#include <nghttp2/nghttp2.h>

#include "gatling/http/request.h"
#include "gatling/http2/priority.h"

enum {
	/* Bytes of the fields of a request, each 32 more than it has (section 6.5.2); more, or more than FIELDS_MAX: 431,
	 * and the connection ends: a reference of one octet may stand for 4 KB. */
	HTTP2_LIST_MAX = HEAD_MAX
};

/* Decodes a block to its end, even if it is wrong, so that the next can be decoded. The first error settles the result:
 * nothing behind it is looked at. *request refers to text (HTTP2_TEXT bytes). trailers: the block follows a request
 * whose head has come; then only errors are reported, and request->lines. passes: requests may be passed on; then
 * request->lines has the fields as those of HTTP/1.1, with one Cookie (section 8.2.3), and CONNECT for a WebSocket (RFC
 * 8441) becomes a GET.
 *    0: it is a request;
 *  > 0: the status to answer it with; 431: the block has not been decoded to its end, the connection cannot go on;
 *  < 0: the negative error: -HTTP2_PROTOCOL_ERROR of the stream, another of the connection. */
enum { HTTP2_TEXT = 4 * HTTP2_LIST_MAX + 64 };
int http2_request_decode(nghttp2_hd_inflater *inflater, const unsigned char *block, size_t length, bool trailers,
						 bool passes, char *text, struct request *request, struct priority *priority);

#endif
