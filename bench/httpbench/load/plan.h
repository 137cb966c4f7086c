/* plan.h - the settings of a run. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "bench/httpbench/load/stages.h"
#include "bench/httpbench/transport/tls.h"
#include <stdbool.h>

#include "bench/client/response.h"
#include "bench/client/source.h"
#include "bench/client/target.h"

enum arrival { ARRIVAL_POISSON, ARRIVAL_CONSTANT };

struct plan {
	struct target *target; /* targets on one server, chosen at random by share */
	unsigned targets;
	struct target_bytes *fields; /* for HTTP/1.1: the ends of heads, each with its empty line; chosen at random */
	unsigned heads;              /* how many; 0: targets have whole heads */
	double *share;               /* the shares of the targets, cumulative: the last one is 1 */
	unsigned clients;            /* threads */
	unsigned connections;        /* of all clients together; at least one each */
	unsigned per_connection;     /* requests on a connection; 0: no limit */
	unsigned depth;              /* requests under way on a connection at the same time */
	double rate;                 /* requests a second that are due, of all clients; 0: closed loop */
	struct stages stages;        /* rates that follow each other; rate is their mean */
	enum arrival arrival;
	uint64_t seed;
	const char *backends; /* programs that work for the server, separated by commas; NULL: none */
	unsigned rank, ranks; /* this process among several; they differ in seeds and turns */
	uint64_t requests;    /* of all clients together; 0: no limit */
	int64_t duration_ns, ramp_ns, timeout_ns;
	struct sources sources;
	struct response_expected expected;
	struct target_bytes content; /* of every request; length 0: none */
	struct tls_options tls;
	bool hold; /* open loop: all connections are opened at the beginning, and kept; otherwise as they are needed */
	bool http2, http3; /* depth then counts streams */
	bool websocket;    /* a request is a message: content is its frame, expected the message */
	unsigned window,
		window_all; /* HTTP/2 and HTTP/3: bytes that the server may send on a stream, and on a connection */
};

/* Returns whether the plan is open loop: requests are due at a given rate. In closed loop a request is due when the one
 * before it has been answered. */
static inline bool plan_open_loop(const struct plan *plan) { return plan->rate > 0; }

/* Returns whether all connections are to be open, whether there are requests for them or not. */
static inline bool plan_opens_all(const struct plan *plan) { return plan->hold || !plan_open_loop(plan); }

#endif
