/* http1.h - HTTP/1.1 on a connection: requests leave in order, and their responses come in that order (RFC 9112). */
#ifndef BENCH_HTTP1_H
#define BENCH_HTTP1_H

#include "bench/httpbench/load/connection.h"

/* Writes all requests that are assigned. Returns 0, or -1 with errno; EAGAIN: some are left. */
int http1_send(struct connections *connections, struct connection *conn);

/* Takes input. Returns false if the connection is closed then. */
bool http1_take(struct connections *connections, struct connection *conn, const char *data, size_t length);

/* The server has closed. */
void http1_end_of_input(struct connections *connections, struct connection *conn);

#endif
