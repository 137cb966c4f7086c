/* waiting_request.c - see waiting_request.h. */
#include "gatling/exchange/waiting_request.h"

#include <stdlib.h>

static void resume(struct waiter *waiter) {
	struct waiting_request *w = (struct waiting_request *)waiter;
	w->ready(w->owner);
}

static void wait_for(struct waiting_request *w, struct job *job) {
	w->fetched[w->waits++] = job->fetches;
	job_wait(job, &w->waiter);
}

struct waiting_request *waiting_request_new(const struct request *request, struct job *job, int64_t started_ns) {
	size_t size = 0;
	struct waiting_request *w = malloc(sizeof *w);
	struct request *copy = w ? request_keep(request, &size) : NULL;
	if (!copy) {
		free(w);
		return NULL;
	}
	*w = (struct waiting_request){
		.waiter = {.resume = resume}, .request = copy, .memory = sizeof *w + size, .started_ns = started_ns};
	if (job) wait_for(w, job);
	return w;
}

void waiting_request_free(struct waiting_request *w) {
	if (!w) return;
	waiter_leave(&w->waiter);
	free((struct request *)(uintptr_t)w->request);
	free(w->upstream);
	free(w);
}

void waiting_request_fail(struct waiting_request *w, int status, const char *upstream) {
	w->failed = status;
	w->upstream = *upstream ? strdup(upstream) : NULL;
	if (!w->upstream) return;
	w->memory += strlen(upstream) + 1;
	((struct request *)(uintptr_t)w->request)->failed = slice_of(w->upstream);
}

void waiting_request_give_up(struct waiting_request *w) {
	waiter_leave(&w->waiter);
	w->waits = WAITS_MAX;
}

bool waiting_request_answer(struct waiting_request *w, const struct content *content, struct connection_info connection,
							struct response *response) {
	waiter_leave(&w->waiter);
	connection.patient &= w->waits < WAITS_MAX;
	connection.fetched = w->fetched;
	connection.failed = w->failed;
	answer(content, w->request, &connection, response);
	if (response->status || response->upstream) return true;
	wait_for(w, response->job);
	return false;
}
