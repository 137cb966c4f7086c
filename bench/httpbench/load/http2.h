/* http2.h - HTTP/2 on a connection (RFC 9113), by nghttp2: each request is a stream. */
#ifndef BENCH_HTTP2_H
#define BENCH_HTTP2_H

#include "bench/httpbench/load/connection.h"

extern const struct connection_protocol http2;

#endif
