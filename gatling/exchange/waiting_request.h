/* waiting_request.h - a request whose answer has to wait for a job, kept until it can be answered. */
#ifndef GATLING_EXCHANGE_WAITING_REQUEST_H
#define GATLING_EXCHANGE_WAITING_REQUEST_H

#include "gatling/base/job.h"
#include "gatling/site/answer/answer.h"

struct waiting_request {
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
struct waiting_request *waiting_request_new(const struct request *request, struct job *job, int64_t started_ns);

/* Stops waiting and frees it. NULL is allowed. */
void waiting_request_free(struct waiting_request *waiting);

/* Notes that it could not be passed on to an upstream (""; not known): the next answer has that status, and its line in
 * the log the address. */
void waiting_request_fail(struct waiting_request *waiting, int status, const char *upstream);

/* Stops waiting: the next answer is one that needs no job. */
void waiting_request_give_up(struct waiting_request *waiting);

/* Returns whether it waits for a job now. */
static inline bool waiting_for_job(const struct waiting_request *waiting) { return waiting->waiter.link; }

/* Asks for the answer again, see answer(); it may be to pass the request on. Returns false if it waits for another job.
 * After WAITS_MAX jobs there is an answer in any case. */
bool waiting_request_answer(struct waiting_request *waiting, const struct content *content,
							struct connection_info connection, struct response *response);

#endif
