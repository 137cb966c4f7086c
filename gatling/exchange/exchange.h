/* exchange.h - one request in flight, until it is answered and logged, whatever carries it. The carrier (carrier.h)
 * makes an exchange on its stack, and most are answered there. One that has to wait for a job, or is passed on to an
 * upstream, moves to memory of its own. */
#ifndef GATLING_EXCHANGE_EXCHANGE_H
#define GATLING_EXCHANGE_EXCHANGE_H

#include "gatling/base/job.h"
#include "gatling/client/limits.h"
#include "gatling/exchange/carrier.h"
#include "gatling/exchange/response_batch.h"
#include "gatling/site/answer/answer.h"
#include "gatling/upstream/proxied.h"

/* What the exchanges of a worker share. */
struct exchange_context {
	struct site_context *site;
	struct batch_pool *batches;
	struct limits *limits; /* NULL: none */
	const struct trusted_proxies *trust;
	struct upstreams *upstreams; /* NULL: no request is passed on */
};

struct exchange {
	const struct exchange_context *context;
	const struct carrier *carrier;
	void *carried; /* the connection or stream, for the functions of the carrier and ready() */
	/* The carrier's, then a copy. Of a tunnel: the part of it that is logged. NULL: it was malformed. */
	const struct request *request;
	/* The carrier sets client, proxy, forwarding, host, port, secure, copied and may_wait before exchange_begin() and
	 * exchange_again(). */
	struct arrival arrival;
	int64_t started_ns;          /* when the request was read, as in a response batch */
	struct proxied_share *share; /* of all requests of the client; NULL: it has no other ones; the carrier sets it */
	uint16_t failed;             /* the status to answer if it could not be passed on; else 0 */
	bool counted;                /* limits_take_request() has counted it; the carrier returns it */
	bool answered;               /* its answer is counted and logged */
	bool rated;                  /* it is counted for the rate of its path */
	bool unlogged;               /* the owner wants no line of it */

	/* What follows is there after exchange_keep(). While it waits: */
	void (*ready)(void *carried);   /* called when it can go on, see exchange_again() and exchange_relay() */
	struct waiter waiter;           /* for a job, */
	int64_t waits_since_ns;         /* when that wait began, */
	int64_t waited_ms;              /* and when the first one did */
	uint32_t size, copied;          /* bytes of memory of this and what follows it, and of the copy */
	char *failed_at;                /* the address of the upstream that could not answer it, malloc'd; NULL: unknown */
	uint8_t waits;                  /* how many jobs it has waited for, or waits for */
	uint64_t prefetched[WAITS_MAX]; /* `prefetches` of these jobs */

	/* While it is passed on: */
	struct proxied *proxied; /* or NULL */
	struct slice user;       /* the authenticated user, malloc'd; or absent */
	char *added;             /* for owner_fields_apply(), malloc'd; NULL: nothing */
	char *hints;             /* lines of a 103 that is sent before the response, malloc'd; NULL: none */
	uint64_t bytes;          /* bytes of the content of the response that have come */
	uint16_t status;         /* of the response; 0: its head has not come */
	uint16_t come;           /* bytes of the request's content that have not yet counted as progress */
	bool begun : 1;          /* content of the request, or a head of a response, has come */
	bool tunnel : 1;
	bool holds_piece : 1; /* the carrier has a piece of content that belongs to the proxied request */
	bool ended : 1;       /* the carrier has the end of the response */
};

/* --- exchange.c --- */

/* Empties the members that the carrier sets. The others, which few requests need, stay as they are. */
void exchange_clear(struct exchange *exchange);

enum exchange_next {
	EXCHANGE_ANSWERED, /* the response is to be sent */
	EXCHANGE_WAITS,    /* for response->job */
	EXCHANGE_PASSED_ON /* to response->upstream */
};

/* Decides how the request is answered: by the state of the server, a proof of ACME, a limit, or the site. With
 * EXCHANGE_WAITS and EXCHANGE_PASSED_ON the carrier calls exchange_keep(), or begins again later. */
enum exchange_next exchange_begin(struct exchange *exchange, struct response *response);

/* Moves the exchange to memory of its own, with a copy of the request; `more` bytes, all zero, follow the struct, for
 * the carrier. There it waits for response->job, or is passed on to response->upstream; with neither, it waits for what
 * the carrier knows of. The carrier has to set ready, and arrival.client if that was on the stack. Returns NULL if
 * memory runs out. */
struct exchange *exchange_keep(const struct exchange *exchange, const struct response *response, size_t more);

/* Returns whether it waits for a job now. */
static inline bool exchange_waits_for_job(const struct exchange *exchange) { return exchange->waiter.link; }

/* Stops waiting for a job. The next answer is one that needs none. */
void exchange_give_up(struct exchange *exchange);

/* Decides again, after the job, or after the upstream has failed. With EXCHANGE_WAITS and EXCHANGE_PASSED_ON it waits
 * again. After WAITS_MAX jobs there is always an answer. Without memory to pass it on, answers with 503. */
enum exchange_next exchange_again(struct exchange *exchange, struct response *response);

/* Counts the answer, and logs it: with the others of a batch, or at once if batch is NULL. bytes: of its content. */
void exchange_note(struct exchange *exchange, struct response_batch *batch, int status, struct slice user,
				   uint64_t bytes);

/* Returns the bytes of memory of an exchange that was kept, without what the carrier holds. */
size_t exchange_memory(const struct exchange *exchange);

/* Ends and frees an exchange that was kept; NULL is allowed. Logs the response of an upstream, or with
 * EXCHANGE_UNANSWERED that there was no answer. */
enum { EXCHANGE_UNANSWERED = 499 }; /* that of nginx for a client that has left; here also for one that was closed */
void exchange_end(struct exchange *exchange);

/* --- exchange_relay.c: content, both ways, between the carrier and the proxied request --- */

enum exchange_relayed {
	RELAY_WAITS,  /* for the client, or the upstream */
	RELAY_DONE,   /* the carrier has the whole response */
	RELAY_FAILED, /* there is no response: exchange_again() follows */
	RELAY_BROKEN  /* part of a response has been sent, and nothing can follow it */
};

/* Gives the carrier what has come of the response, until it has enough. Call it when the carrier has sent what it was
 * given before. */
enum exchange_relayed exchange_relay(struct exchange *exchange);

/* Notes that the carrier has sent the piece of content that it kept, if it had one. */
void exchange_taken(struct exchange *exchange);

/* Returns how many bytes of content its client takes now; for struct proxied_share. */
size_t exchange_room(const void *exchange);

/* Notes that n bytes of the request's content have been put into the proxied request; trailers: not NULL after the last
 * ones, the lines of the trailer section, which may be empty. Returns whether this counts as progress: few bytes do
 * not. */
bool exchange_put(struct exchange *exchange, size_t n, const struct slice *trailers);

/* Returns whether the client waits for a 100 before it sends content. */
bool exchange_waits_for_100(const struct exchange *exchange);

#endif
