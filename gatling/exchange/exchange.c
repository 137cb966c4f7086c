/* exchange.c - see exchange.h: the beginning of a request, its waits, and its end. */
#include "gatling/exchange/exchange.h"

#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/site/answer/challenge.h"
#include "gatling/site/answer/health.h"

void exchange_clear(struct exchange *x) { memset(x, 0, offsetof(struct exchange, ready)); }

/* --- decisions --- */

/* Returns the limits of a request that is passed on. */
static const struct upstream_limits *limits_of(const struct exchange *x, const struct response *r) {
	return r->limits ? &r->limits->upstream : &x->context->site->options->upstream_limits;
}

/* Content that only an upstream would take is refused. */
static enum exchange_next decided(const struct exchange *x, struct response *r) {
	const uint64_t length = x->request->content_length;
	const bool too_long = length && r->upstream && upstreams_refuse_body(limits_of(x, r), length);
	if (!r->status && !too_long) return r->upstream ? EXCHANGE_PASSED_ON : EXCHANGE_WAITS;
	if (too_long || (length > BODY_MAX && !x->failed)) {
		response_drop(r);
		response_status(r, 413);
	}
	return EXCHANGE_ANSWERED;
}

/* Counts the request, once. Returns whether it is within the limits; otherwise *r refuses it. */
static bool is_within_limits(struct exchange *x, struct response *r) {
	if (x->counted || !x->context->limits) return true;
	const int status = limits_take_request(x->context->limits, x->arrival.client, x->context->site->now_ns);
	if (status) response_status(r, status);
	x->counted = !status;
	return x->counted;
}

static void ask_site(struct exchange *x, struct response *r) {
	struct arrival *arrival = &x->arrival;
	arrival->client_is_known = !arrival->forwarding || !forwarding_of(x->context->trust, arrival->client);
	arrival->rated = x->rated;
	answer(x->context->site, x->request, arrival, r);
	arrival->site = r->site;
	if (!r->limits) return;
	x->rated = true;
	x->unlogged = r->limits->unlogged;
}

enum exchange_next exchange_begin(struct exchange *x, struct response *r) {
	const struct site_context *site = x->context->site;
	const bool answered = (site->options->health && health_answer(site, x->request, r)) ||
						  (site->challenges && challenge_answer(site, x->request, r));
	if (!answered && is_within_limits(x, r)) ask_site(x, r);
	return decided(x, r);
}

/* --- waiting --- */

static void resume(struct waiter *waiter) {
	const struct exchange *x = (const struct exchange *)((char *)waiter - offsetof(struct exchange, waiter));
	x->ready(x->carried);
}

static void upstream_ready(void *exchange) {
	const struct exchange *x = exchange;
	x->ready(x->carried);
}

static void wait_for(struct exchange *x, struct job *job) {
	x->waiter.resume = resume;
	x->waits_since_ns = x->context->site->now_ns;
	if (!x->waits) x->waited_ms = x->context->site->now_ms;
	x->prefetched[x->waits++] = job->prefetches;
	job_wait(job, &x->waiter);
}

static bool keep_user(struct exchange *x, struct slice user) {
	if (!user.at) return true;
	char *copy = malloc(user.length + 1);
	if (!copy) return false;
	(void)text_copy(copy, user);
	x->user = (struct slice){.at = copy, .length = user.length};
	return true;
}

/* Keeps the owner's fields of the response. */
static bool keep_added(struct exchange *x, struct slice lines) {
	if (!lines.length) return true;
	x->added = strndup(lines.at, lines.length);
	return x->added;
}

/* Returns whether the client understands a response before that to its request: some of HTTP/1.1 take it for the one
 * (RFC 9110, section 15.2), but browsers do not, which say that they load a page
 * (https://www.w3.org/TR/fetch-metadata/). */
static bool takes_hints(const struct exchange *x) {
	struct slice lines = x->request->lines, mode;
	if (x->carrier->protocol != COUNT_HTTP1) return true;
	return x->request->minor && request_next_value(&lines, SLICE("sec-fetch-mode"), &mode) &&
		   slice_equal(mode, SLICE("navigate"));
}

static bool keep_hints(struct exchange *x, struct slice lines) {
	if (!lines.length || !takes_hints(x)) return true;
	x->hints = strndup(lines.at, lines.length);
	return x->hints;
}

/* Frees what pass_on() has kept. */
static void drop_kept(struct exchange *x) {
	free((char *)(uintptr_t)x->user.at);
	x->user = (struct slice){0};
	free(x->added);
	x->added = NULL;
	free(x->hints);
	x->hints = NULL;
}

/* Passes the request on. Returns false without memory. */
static bool pass_on(struct exchange *x, const struct response *r) {
	const struct request *q = x->request;
	const bool content_first = x->carrier->checks_length && q->framing == BODY_LENGTH && !q->expect_continue;
	const struct upstream_request request = {.request = q,
											 .arrival = &x->arrival,
											 .target = r->location,
											 .content_first = content_first,
											 .user = r->user,
											 .script = &r->script,
											 .limits = limits_of(x, r),
											 .site = r->site};
	if (!keep_user(x, r->user) || !keep_added(x, r->lines) || !keep_hints(x, r->hints)) return false;
	x->proxied = proxied_new(x->context->upstreams, r->upstream, &request, x->share, upstream_ready, x);
	return x->proxied;
}

struct exchange *exchange_keep(const struct exchange *from, const struct response *r, size_t more) {
	struct exchange *x = calloc(1, sizeof *x + more);
	size_t size = 0;
	if (!x) return NULL;
	memcpy(x, from, offsetof(struct exchange, ready));
	x->request = request_keep(from->request, &size);
	x->size = (uint32_t)(sizeof *x + more);
	x->copied = (uint32_t)size;
	if (x->request && r->job && !r->status) wait_for(x, r->job);
	if (x->request && (r->status || !r->upstream || pass_on(x, r))) return x;
	x->answered = true; /* the connection ends with it */
	exchange_end(x);
	return NULL;
}

void exchange_give_up(struct exchange *x) {
	waiter_leave(&x->waiter);
	x->waits = WAITS_MAX;
}

/* Ends the proxied request, without a response. The next answer says so, and its line in the log has the address. */
static void leave_upstream(struct exchange *x) {
	const char *address = proxied_address(x->proxied);
	x->failed = (uint16_t)proxied_failure(x->proxied);
	x->failed_at = *address ? strdup(address) : NULL;
	if (x->failed_at) x->copied += (uint32_t)strlen(address) + 1;
	if (x->failed_at) ((struct request *)(uintptr_t)x->request)->failed = slice_of(x->failed_at);
	proxied_free(x->proxied);
	x->proxied = NULL;
	drop_kept(x);
}

enum exchange_next exchange_again(struct exchange *x, struct response *r) {
	waiter_leave(&x->waiter);
	if (x->proxied) leave_upstream(x);
	x->arrival.may_wait &= x->waits < WAITS_MAX;
	x->arrival.prefetched = x->prefetched;
	x->arrival.since_ms = x->waited_ms;
	x->arrival.failed = x->failed;
	ask_site(x, r);
	if (!r->status && !r->upstream) wait_for(x, r->job);
	if (!r->status && r->upstream && !pass_on(x, r)) response_status(r, 503);
	return decided(x, r);
}

/* --- the end --- */

void exchange_note(struct exchange *x, struct response_batch *batch, int status, struct slice user, uint64_t bytes) {
	struct batch_pool *pool = x->context->batches;
	x->answered = true;
	count_answer(x->carrier->protocol, status);
	if (x->unlogged) return;
	if (batch) response_batch_note(pool, batch, &x->arrival, x->request, user, status, bytes);
	else batch_pool_log(pool, x->started_ns, &x->arrival, x->request, user, status, bytes, NULL);
}

size_t exchange_memory(const struct exchange *x) {
	return x->size + x->copied + x->user.length + (x->added ? strlen(x->added) : 0) +
		   (x->hints ? strlen(x->hints) : 0) + (x->proxied ? proxied_memory(x->proxied) : 0);
}

static void log_upstream(const struct exchange *x) {
	struct access_upstream upstream = {.status = x->status, .ns = (int64_t)proxied_answered_ms(x->proxied) * 1000000};
	const char *address = proxied_address(x->proxied);
	if (*address) upstream.address = slice_of(address);
	count_answer(x->carrier->protocol, x->status);
	if (x->unlogged) return;
	batch_pool_log(x->context->batches, x->started_ns, &x->arrival, x->request, x->user, x->status, x->bytes,
				   &upstream);
}

void exchange_end(struct exchange *x) {
	if (!x) return;
	if (x->waits) waiter_leave(&x->waiter);
	if (x->status) log_upstream(x);
	else if (!x->answered) exchange_note(x, NULL, EXCHANGE_UNANSWERED, (struct slice){0}, 0);
	proxied_free(x->proxied);
	free((struct request *)(uintptr_t)x->request);
	free(x->failed_at);
	drop_kept(x);
	free(x);
}
