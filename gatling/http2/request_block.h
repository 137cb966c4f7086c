/* request_block.h - decodes an HTTP/2 header block to a request (RFC 9113, section 8). */
#ifndef GATLING_HTTP2_REQUEST_BLOCK_H
#define GATLING_HTTP2_REQUEST_BLOCK_H

#include <nghttp2/nghttp2.h>

#include "gatling/http/request.h"
#include "gatling/streams/priority.h"

enum {
	/* Bytes of the fields of a request, plus 32 for each field (section 6.5.2). If there are more, or more than
	 * FIELDS_MAX fields, the status is 431 and the connection ends, since one octet of a block can stand for 4 KB. */
	HTTP2_LIST_MAX = HEAD_MAX
};

/* Decodes a block to its end, even if it is malformed, so that the next one can be decoded. The first error determines
 * the result; fields after it are not checked. *request refers to text (HTTP2_TEXT bytes). trailers: the block has the
 * trailer fields of a request; then only errors are reported, and request->lines. These are the fields as lines of
 * HTTP/1.1, with one Cookie (section 8.2.3): all of them if `passes`, since requests may be passed on, else Cookie and
 * Accept-Language. A CONNECT for a WebSocket (RFC 8441) becomes a GET. Returns
 *    0: it is a request;
 *  > 0: the status to answer; after 431, the block was not decoded to its end, and the connection cannot go on;
 *  < 0: the negative error: -HTTP2_PROTOCOL_ERROR ends the stream, any other error the connection. */
enum { HTTP2_TEXT = 4 * HTTP2_LIST_MAX + 64 };
int http2_request_decode(nghttp2_hd_inflater *inflater, const unsigned char *block, size_t length, bool trailers,
						 bool passes, char *text, struct request *request, struct priority *priority);

#endif
