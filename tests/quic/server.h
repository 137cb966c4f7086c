/* server.h - workers with QUIC alone, for tests: they serve the files of site.h to the clients of network.h. */
#ifndef TESTS_QUIC_SERVER_H
#define TESTS_QUIC_SERVER_H

#include "gatling/quic/endpoint.h"
#include "tests/quic/site.h"

enum { SERVER_PROCESSES = 3, SERVER_WORKERS = 3 };

/* Make what all of them need, once for a process, and free it. */
void server_set_up(void);
void server_tear_down(void);

/* Opens the QUIC side of so many workers, without limits of time beside those of QUIC. They have one socket, on which
 * the first worker receives. The connections of those before are forgotten. */
void server_open(unsigned workers);

/* Ends all of them. */
void server_close(void);

/* Has other workers take over, as those of a new process; at most SERVER_PROCESSES - 1 times. The ones before end when
 * their connections have ended, or with server_end(). Processes are numbered from 0 on. */
void server_succeed(unsigned workers);
void server_end(unsigned process);

/* Has another worker of the last process receive from now on; counted modulo the number of workers. */
void server_choose(unsigned worker);

/* Returns the number of the last process. */
unsigned server_last(void);

/* Returns a worker of a process; NULL: it does not run. server_quic() returns the first one of the first process. */
struct quic *server_worker(unsigned process, unsigned worker);
struct quic *server_quic(void);
struct conn_options *server_options(void);

/* Does a turn of the workers' loops. */
void server_turn(void);

/* Returns when they have to be run next, if nothing arrives; INT64_MAX: never. */
int64_t server_next_ns(void);

#endif
