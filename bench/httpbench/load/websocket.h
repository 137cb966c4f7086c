/* websocket.h - a WebSocket on a connection (RFC 6455): each request is a message, and its answer the echo. The first
 * request of a connection says which target it is opened for. */
#ifndef BENCH_WEBSOCKET_H
#define BENCH_WEBSOCKET_H

#include "bench/httpbench/load/connection.h"

extern const struct connection_protocol websocket;

#endif
