/* http1.h - HTTP/1.1 on a connection: requests are sent in order, and their responses come in this order (RFC 9112). */
#ifndef BENCH_HTTP1_H
#define BENCH_HTTP1_H

#include "bench/httpbench/load/connection.h"

extern const struct connection_protocol http1;

/* Writes the assigned requests, each with its head, which may be empty, and the plan's content; see send() of struct
 * connection_protocol. */
int http1_write(struct connections *connections, struct connection *conn);

#endif
