/* request_block.c - see request_block.h. */
#include "gatling/http2/request_block.h"

#include "gatling/http2/frame.h"

/* Decodes the fields of a block. Returns 0, 431, or a negative error. */
static int decode(struct request_fields *fields, nghttp2_hd_inflater *inflater, const unsigned char *block,
				  size_t length) {
	int flags = 0;
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, block, length, 1);
		if (n < 0) return -HTTP2_COMPRESSION_ERROR;
		block += n;
		length -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT &&
			!request_fields_add(fields, (struct slice){.at = (char *)nv.name, .length = nv.namelen},
								(struct slice){.at = (char *)nv.value, .length = nv.valuelen}))
			return 431;
	}
	nghttp2_hd_inflate_end_headers(inflater);
	return 0;
}

int http2_request_decode(nghttp2_hd_inflater *inflater, const unsigned char *block, size_t length, bool trailers,
						 bool passes, char *text, struct request *request, struct priority *priority) {
	struct request_fields fields = {.version = SLICE(" HTTP/2.0"), .trailers = trailers, .passes = passes};
	request_fields_begin(&fields, request, priority, text);
	const int error = decode(&fields, inflater, block, length), status = request_fields_end(&fields, !error);
	return error ? error : status;
}
