/* passing.h - a request that is passed on to an upstream: what is kept of it until its response has been sent and
 * logged. How its content travels is up to HTTP/1.1 (conn/conn_pass.h) and HTTP/2 (http2/stream.h). */
#ifndef GATLING_EXCHANGE_PASSING_H
#define GATLING_EXCHANGE_PASSING_H

#include "gatling/exchange/response_batch.h"
#include "gatling/exchange/waiting_request.h"
#include "gatling/upstream/passage.h"

struct passing {
	struct waiting_request *kept; /* the request; NULL: only `logged` of it */
	struct request *logged;
	size_t logged_size; /* bytes */
	int64_t started_ns;

	struct passage *passage;
	int status;        /* of the response; 0: its head has not come */
	uint64_t content;  /* bytes of the response that the client gets */
	struct slice user; /* who was authenticated, in memory of its own; or absent */
};

/* A request, and how it has come. */
struct passing_request {
	const struct request *request;
	struct waiting_request *waiting; /* if it has waited for a job: this is taken over; NULL: it is copied */
	int64_t started_ns;              /* when it was read */
	const struct peer *client;
	enum forwarding forwarding; /* how the other end, if that is a trusted proxy, says so: */
	struct peer proxy;          /* its address */
	unsigned port;
	bool secure;
	struct passage_share *share; /* see passage_new() */
};

/* Begins. response: that of answer(), which says where to. false: ENOMEM, and nothing has been taken over. */
bool passing_begin(struct passing *passing, struct upstreams *upstreams, const struct passing_request *asked,
				   const struct response *response);

/* Returns what is kept of the request. */
static inline const struct request *passing_kept(const struct passing *passing) {
	return passing->kept ? passing->kept->request : passing->logged;
}

/* Keeps no more than is logged: a tunnel has begun, of which there may be thousands, for hours. */
void passing_slim(struct passing *passing);

/* Returns the bytes of memory that it takes, besides its own. */
size_t passing_memory(const struct passing *passing);

/* Ends it. Logs what has been answered, as of that protocol; if nothing has been, returns the request, which is to be
 * answered, or freed. */
struct waiting_request *passing_end(struct passing *passing, struct batch_pool *pool, const struct peer *client,
									enum value protocol);

#endif
