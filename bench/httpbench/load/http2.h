/* http2.h - HTTP/2 on a connection, with nghttp2: each request is a stream (RFC 9113). */
#ifndef BENCH_HTTP2_H
#define BENCH_HTTP2_H

#include "bench/httpbench/load/connection.h"

struct http2;

/* For a connection that is open. Both must stay where they are. NULL: no memory. */
struct http2 *http2_new(struct connections *connections, struct connection *conn);

/* NULL is allowed. */
void http2_free(struct http2 *http2);

/* As http1_send(); also sends what the protocol wants. EBADMSG: that is the end, as the server broke it. */
int http2_send(struct connections *connections, struct connection *conn);
bool http2_wants_to_send(const struct http2 *http2);

/* As http1_take(). */
bool http2_take(struct connections *connections, struct connection *conn, const char *data, size_t length);

#endif
