/* http3_head.h - the head of an HTTP/3 response: a QPACK field section without the dynamic table (RFC 9204, section
 * 4.5), as servers send it to a client that does not allow one. */
#ifndef BENCH_HTTP3_HEAD_H
#define BENCH_HTTP3_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "bench/client/http3_frames.h"

enum { HTTP3_NO_LENGTH = -1 };

struct http3_head {
	unsigned status;
	int64_t content_length; /* HTTP3_NO_LENGTH: it is not said */
};

/* Parses a section. Returns 0, HTTP3_DECOMPRESSION_FAILED, or HTTP3_MESSAGE_ERROR if it has no valid :status, or a
 * Content-Length that is no number. */
int http3_head_parse(struct http3_head *head, const char *section, size_t length);

#endif
