/* passed_request.h - a request that is passed on to an upstream, until its response has been sent and logged. Its
 * content is moved by HTTP/1.1 (conn/conn_pass.h) or HTTP/2 (http2/stream.h). */
#ifndef GATLING_EXCHANGE_PASSED_REQUEST_H
#define GATLING_EXCHANGE_PASSED_REQUEST_H

#include "gatling/exchange/kept_request.h"
#include "gatling/exchange/response_batch.h"
#include "gatling/upstream/passage.h"

struct passed_request {
	struct kept_request *kept; /* the request; NULL: only the part that is logged, in `logged` */
	struct request *logged;
	size_t logged_size; /* bytes */
	int64_t started_ns; /* when it was read, if kept is NULL */

	struct passage *passage;
	int status;        /* of the response; 0: its head has not come */
	uint64_t bytes;    /* bytes of the content of the response that have come */
	struct slice user; /* the authenticated user, malloc'd; or absent */
};

/* A request, and how it came. */
struct arrived_request {
	const struct request *request;
	/* The request, if it has waited for a job, to be taken over; NULL: the request is copied. */
	struct kept_request *kept;
	int64_t started_ns; /* when it was read */
	const struct peer *client;
	enum forwarding forwarding; /* the field in which a trusted proxy names the client */
	struct peer proxy;          /* the address of that proxy */
	unsigned port;
	bool secure;
	bool content_first;          /* see struct upstream_request */
	struct passage_share *share; /* see passage_new() */
};

/* Begins to pass the request on to the upstream in response, as answer() has filled it in. Returns false without
 * memory, and then has taken nothing over. */
bool passed_request_begin(struct passed_request *passed, struct upstreams *upstreams,
						  const struct arrived_request *arrived, const struct response *response);

/* Returns the request, or the part of it that is logged. */
static inline const struct request *passed_request_kept(const struct passed_request *passed) {
	return passed->kept ? passed->kept->request : passed->logged;
}

/* Frees everything but the part that is logged, for a tunnel that has begun: there may be thousands of them, for
 * hours. */
void passed_request_slim(struct passed_request *passed);

/* Returns the bytes of memory that are kept for it, without *passed itself. */
size_t passed_request_memory(const struct passed_request *passed);

/* Ends the passing on. Logs the response and counts it as protocol, COUNT_HTTP1 or COUNT_HTTP2. If there was no
 * response, returns the request, which has to be answered or freed; otherwise NULL. */
struct kept_request *passed_request_end(struct passed_request *passed, struct batch_pool *pool,
										const struct peer *client, enum value protocol);

#endif
