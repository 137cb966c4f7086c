/* qpack.h - the requests of HTTP/3, whose field sections nghttp3 encodes (RFC 9204). */
#ifndef BENCH_QPACK_H
#define BENCH_QPACK_H

#include <stdbool.h>

#include "bench/client/target.h"

/* Makes what the stream of a request begins with: a HEADERS frame with these fields, encoded without the dynamic table
 * and, if there is content, the head of a DATA frame for it. The caller frees request->at. Returns false without
 * memory. */
bool qpack_request(const struct target_field *field, unsigned fields, size_t content, struct target_bytes *request);

#endif
