/* websocket.h - WebSocket on a connection (RFC 6455): each request is a message, and the server echoes it. The first
 * request of a connection determines the target for which it is opened. */
#ifndef BENCH_WEBSOCKET_H
#define BENCH_WEBSOCKET_H

#include "bench/httpbench/load/connection.h"

extern const struct connection_protocol websocket;

#endif
