/* request_block.h - decodes an HTTP/2 header block to a request (RFC 9113, section 8). */
#ifndef GATLING_HTTP2_REQUEST_BLOCK_H
#define GATLING_HTTP2_REQUEST_BLOCK_H

#include <nghttp2/nghttp2.h>

#include "gatling/streams/request_fields.h"

/* Decodes a block to its end, even if it is malformed, so that the next one can be decoded. *request refers to text
 * (REQUEST_TEXT bytes). trailers: the block has the trailer fields of a request. See request_fields.h. Returns
 *    0: it is a request;
 *  > 0: the status to answer; after 431, the block was not decoded to its end, and the connection cannot go on, since
 *       one octet of a block can stand for 4 KB;
 *  < 0: REQUEST_MALFORMED, which ends the stream, or the negative error that ends the connection. */
int http2_request_decode(nghttp2_hd_inflater *inflater, const unsigned char *block, size_t length, bool trailers,
						 bool passes, char *text, struct request *request, struct priority *priority);

#endif
