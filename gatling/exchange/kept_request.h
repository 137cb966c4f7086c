/* kept_request.h - a copy of a request that cannot be answered at once: it waits for a job, for one of the files of an
 * HTTP/2 connection, or for the upstream that it is passed on to. */
#ifndef GATLING_EXCHANGE_KEPT_REQUEST_H
#define GATLING_EXCHANGE_KEPT_REQUEST_H

#include "gatling/base/job.h"
#include "gatling/site/answer/answer.h"

struct kept_request {
	struct waiter waiter;
	const struct request *request; /* a copy */
	size_t memory;                 /* bytes that all of this takes */
	int failed;                    /* the status, if it could not be passed on; else 0 */
	char *upstream;                /* the address to which it was, in memory of its own; NULL: not known */
	unsigned waits;                /* jobs that it has waited for, or waits for */
	uint64_t fetched[WAITS_MAX];   /* what these fetch; 0: nothing */
	int64_t started_ns;            /* when it was read, as in a response batch */
	void (*ready)(void *owner);
	void *owner;
};

/* Keeps a copy of a request. job is what its answer waits for; NULL: no job, but something that the caller knows of
 * (HTTP/2: one of HTTP2_FILES). When the job is done, ready(owner) is called, from jobs_collect(); both have to be set
 * before. NULL: ENOMEM. */
struct kept_request *kept_request_new(const struct request *request, struct job *job, int64_t started_ns);

/* Stops waiting and frees it. NULL is allowed. */
void kept_request_free(struct kept_request *kept);

/* Notes that it could not be passed on to an upstream (""; not known): the next answer has that status, and its line in
 * the log the address. */
void kept_request_fail(struct kept_request *kept, int status, const char *upstream);

/* Stops waiting: the next answer is one that needs no job. */
void kept_request_give_up(struct kept_request *kept);

/* Returns whether it waits for a job now. */
static inline bool kept_request_waits_for_job(const struct kept_request *kept) { return kept->waiter.link; }

/* Asks for the answer again, see answer(); it may be to pass the request on. Returns false if it waits for another job.
 * After WAITS_MAX jobs there is an answer in any case. */
bool kept_request_answer(struct kept_request *kept, const struct site_context *context,
						 struct connection_info connection, struct response *response);

#endif
