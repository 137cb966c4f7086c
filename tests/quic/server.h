/* server.h - a worker with QUIC alone, for tests: it serves two files to the clients of network.h. */
#ifndef TESTS_QUIC_SERVER_H
#define TESTS_QUIC_SERVER_H

#include "gatling/quic/endpoint.h"

#define SERVER_SMALL "/small.bin"
#define SERVER_LARGE "/large.bin"

enum { SERVER_SMALL_LENGTH = 100, SERVER_LARGE_LENGTH = 300 * 1000 };

/* The content of both, of which SERVER_SMALL is the beginning. */
extern char server_content[SERVER_LARGE_LENGTH];

/* Makes the worker, once for a process. */
void server_set_up(void);
void server_tear_down(void);

/* Opens its QUIC side, without limits of time beside those of QUIC. The connections of the one before are forgotten. */
void server_open(void);
void server_close(void);

/* Sets the length of SERVER_LARGE: an owner writes to it. */
void server_truncate(size_t length);

struct quic *server_quic(void);
struct conn_options *server_options(void);

/* Does a turn of the worker's loop. */
void server_turn(void);

/* Returns when it has to be run next, if nothing arrives; INT64_MAX: never. */
int64_t server_next_ns(void);

#endif
