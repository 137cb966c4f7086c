/* http3.h - HTTP/3 on a connection (RFC 9114), over quic.h: each request is a stream. */
#ifndef BENCH_HTTP3_H
#define BENCH_HTTP3_H

#include "bench/httpbench/load/connection.h"

extern const struct connection_protocol http3;

#endif
