/* http2.h - HTTP/2 on a connection, with nghttp2: each request is a stream (RFC 9113). */
#ifndef BENCH_HTTP2_H
#define BENCH_HTTP2_H

#include "bench/httpbench/load/connection.h"

extern const struct connection_protocol http2;

#endif
