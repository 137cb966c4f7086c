/* kept_request.h - a copy of a request that cannot be answered at once: it waits for a job, for a file of its HTTP/2
 * connection to be sent, or for the upstream that it is passed on to. */
#ifndef GATLING_EXCHANGE_KEPT_REQUEST_H
#define GATLING_EXCHANGE_KEPT_REQUEST_H

#include "gatling/base/job.h"
#include "gatling/site/answer/answer.h"

struct kept_request {
	struct waiter waiter;
	const struct request *request; /* a copy */
	size_t memory;                 /* bytes of all of this */
	int failed;                    /* the status, if passing it on failed; otherwise 0 */
	char *upstream;                /* the address of that upstream, malloc'd; NULL: unknown */
	unsigned waits;                /* how many jobs it has waited for, or waits for */
	uint64_t fetched[WAITS_MAX];   /* `fetches` of these jobs */
	int64_t started_ns;            /* when it was read, as in a response batch */
	void (*ready)(void *owner);
	void *owner;
};

/* Returns a copy of a request that waits for job, or NULL without memory. If job is NULL, it waits for something that
 * the caller knows of (HTTP/2: one of HTTP2_FILES). When the job is done, jobs_collect() calls ready(owner), which the
 * caller sets before. */
struct kept_request *kept_request_new(const struct request *request, struct job *job, int64_t started_ns);

/* Stops waiting, and frees the request. NULL is allowed. */
void kept_request_free(struct kept_request *kept);

/* Notes that the request could not be passed on to upstream (an address; "": unknown). The next answer has this status,
 * and its line in the log has the address. */
void kept_request_fail(struct kept_request *kept, int status, const char *upstream);

/* Stops waiting. The next answer is one that needs no job. */
void kept_request_give_up(struct kept_request *kept);

/* Returns whether the request waits for a job now. */
static inline bool kept_request_waits_for_job(const struct kept_request *kept) { return kept->waiter.link; }

/* Calls answer() again; its result may also be to pass the request on. Returns false if the request waits for another
 * job. After WAITS_MAX jobs there is always an answer. */
bool kept_request_answer(struct kept_request *kept, const struct site_context *context,
						 struct connection_info connection, struct response *response);

#endif
