/* kept_request.c - see kept_request.h. */
#include "gatling/exchange/kept_request.h"

#include <stdlib.h>

static void resume(struct waiter *waiter) {
	struct kept_request *w = (struct kept_request *)waiter;
	w->ready(w->owner);
}

static void wait_for(struct kept_request *w, struct job *job) {
	w->fetched[w->waits++] = job->fetches;
	job_wait(job, &w->waiter);
}

struct kept_request *kept_request_new(const struct request *request, struct job *job, int64_t started_ns) {
	size_t size = 0;
	struct kept_request *w = malloc(sizeof *w);
	struct request *copy = w ? request_keep(request, &size) : NULL;
	if (!copy) {
		free(w);
		return NULL;
	}
	*w = (struct kept_request){
		.waiter = {.resume = resume}, .request = copy, .memory = sizeof *w + size, .started_ns = started_ns};
	if (job) wait_for(w, job);
	return w;
}

void kept_request_free(struct kept_request *w) {
	if (!w) return;
	waiter_leave(&w->waiter);
	free((struct request *)(uintptr_t)w->request);
	free(w->upstream);
	free(w);
}

void kept_request_fail(struct kept_request *w, int status, const char *upstream) {
	w->failed = status;
	w->upstream = *upstream ? strdup(upstream) : NULL;
	if (!w->upstream) return;
	w->memory += strlen(upstream) + 1;
	((struct request *)(uintptr_t)w->request)->failed = slice_of(w->upstream);
}

void kept_request_give_up(struct kept_request *w) {
	waiter_leave(&w->waiter);
	w->waits = WAITS_MAX;
}

bool kept_request_answer(struct kept_request *w, const struct site_context *context, struct connection_info connection,
						 struct response *response) {
	waiter_leave(&w->waiter);
	connection.patient &= w->waits < WAITS_MAX;
	connection.fetched = w->fetched;
	connection.failed = w->failed;
	answer(context, w->request, &connection, response);
	if (response->status || response->upstream) return true;
	wait_for(w, response->job);
	return false;
}
