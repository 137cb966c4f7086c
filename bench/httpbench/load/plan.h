/* plan.h - the settings of a run. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "bench/httpbench/load/tls.h"
#include <stdbool.h>

#include "bench/response.h"
#include "bench/source.h"
#include "bench/target.h"

enum arrival { ARRIVAL_POISSON, ARRIVAL_CONSTANT };

struct plan {
	struct target *target; /* of one server, asked for at random, by share */
	unsigned targets;
	double *share;           /* of the targets up to and with each, rising to 1 */
	unsigned clients;        /* threads */
	unsigned connections;    /* of all clients; at least one each */
	unsigned per_connection; /* requests on a connection, 0: no limit */
	unsigned depth;          /* requests on a connection that are under way at the same time */
	double rate;             /* requests a second that are due, of all clients; 0: each when the last is answered */
	enum arrival arrival;
	uint64_t seed;
	unsigned rank, ranks; /* of several processes like this one: sets apart seeds and turns */
	uint64_t requests;    /* of all clients; 0: no limit */
	int64_t duration_ns, ramp_ns, timeout_ns;
	struct sources sources;
	struct response_expected expected;
	struct target_bytes content; /* of every request; length 0: none */
	struct tls_options tls;
	bool http2;                  /* depth is of streams then */
	bool websocket;              /* a request is a message: content is its frame, and the message is expected */
	unsigned window, window_all; /* HTTP/2: bytes that the server may send on a stream, and on a connection */
};

/* Open loop: requests are due at a rate. Closed loop: one is due when the one before it is answered. */
static inline bool plan_open_loop(const struct plan *plan) { return plan->rate > 0; }

#endif
