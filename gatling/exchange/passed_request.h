/* passed_request.h - a request that is passed on to an upstream: what is kept of it until its response has been sent
 * and logged. How its content travels is up to HTTP/1.1 (conn/conn_pass.h) and HTTP/2 (http2/stream.h). */
#ifndef GATLING_EXCHANGE_PASSED_REQUEST_H
#define GATLING_EXCHANGE_PASSED_REQUEST_H

#include "gatling/exchange/kept_request.h"
#include "gatling/exchange/response_batch.h"
#include "gatling/upstream/passage.h"

struct passed_request {
	struct kept_request *kept; /* the request; NULL: only `logged` of it */
	struct request *logged;
	size_t logged_size; /* bytes */
	int64_t started_ns; /* when it was read, if kept is NULL */

	struct passage *passage;
	int status;        /* of the response; 0: its head has not come */
	uint64_t bytes;    /* of the content of the response, as far as it has come */
	struct slice user; /* who was authenticated, in memory of its own; or absent */
};

/* A request, and how it has come. */
struct arrived_request {
	const struct request *request;
	struct kept_request *kept; /* if it has waited for a job: this is taken over; NULL: it is copied */
	int64_t started_ns;        /* when it was read */
	const struct peer *client;
	enum forwarding forwarding; /* how the other end, if that is a trusted proxy, says so: */
	struct peer proxy;          /* its address */
	unsigned port;
	bool secure;
	struct passage_share *share; /* see passage_new() */
};

/* Begins to pass it on. response: that of answer(), which says where to. Returns false without memory, and nothing has
 * been taken over. */
bool passed_request_begin(struct passed_request *passed, struct upstreams *upstreams,
						  const struct arrived_request *arrived, const struct response *response);

/* Returns what is kept of the request. */
static inline const struct request *passed_request_kept(const struct passed_request *passed) {
	return passed->kept ? passed->kept->request : passed->logged;
}

/* Keeps no more than is logged: a tunnel has begun, of which there may be thousands, for hours. */
void passed_request_slim(struct passed_request *passed);

/* Returns the bytes of memory that it takes, besides its own. */
size_t passed_request_memory(const struct passed_request *passed);

/* Ends it. Logs what has been answered, and counts it as COUNT_HTTP1 or COUNT_HTTP2 (protocol); if nothing has been,
 * returns the request, which is to be answered, or freed. */
struct kept_request *passed_request_end(struct passed_request *passed, struct batch_pool *pool,
										const struct peer *client, enum value protocol);

#endif
