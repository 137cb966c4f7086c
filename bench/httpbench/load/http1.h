/* http1.h - HTTP/1.1 on a connection: requests leave in order, and their responses come in that order (RFC 9112). */
#ifndef BENCH_HTTP1_H
#define BENCH_HTTP1_H

#include "bench/httpbench/load/connection.h"

extern const struct connection_protocol http1;

/* Its send(): the head of each request, which may be empty, and the plan's content. */
int http1_write(struct connections *connections, struct connection *conn);

#endif
