/* answer.c - see streams.h: turns responses into header blocks and content, at once or after a wait. */
#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/site/response.h"
#include "gatling/streams/streams.h"

/* --- responses --- */

enum streams_hold streams_hold_of(const struct request *q, const struct response *r) {
	const struct representation *f = r->status == 304 ? NULL : r->representation;
	if (q->method == METHOD_HEAD) return HOLDS_NOTHING;
	if (r->source.owner || (f && f->gzipped)) return HOLDS_SOURCE;
	return f && f->fd != -1 ? HOLDS_FILE : HOLDS_NOTHING;
}

bool streams_may_hold(const struct streams *t, enum streams_hold hold) {
	return hold == HOLDS_NOTHING || t->held[hold] < STREAMS_HELD ||
		   (hold == HOLDS_FILE && cache_spares_files(t->exchanges->site->cache));
}

struct slice streams_block(const struct streams *t, struct response *r, char *block, uint64_t *content_length) {
	char *const lines = WORKSPACE(RESPONSE_FIELDS_MAX);
	char *at = text_copy(block + t->protocol->status(r->status, block), *t->common_block);
	const size_t length = response_fields(r, lines, content_length);
	if (!length) return (struct slice){0};
	at += t->protocol->fields((struct slice){.at = lines, .length = length}, at);
	return (struct slice){.at = block, .length = (size_t)(at - block)};
}

/* Gives the stream the batch with the response, whose representation and source it takes over. Returns false if memory
 * runs out. */
static bool add_response(struct stream *s, struct response *r, struct slice block, bool head_only) {
	bool ok = block.at && response_batch_take(s->streams->exchanges->batches, BATCH_SMALL, &s->batch);
	if (ok && block.length) ok = iob_addcopy(s->batch->iob, block.at, block.length) == 0;
	if (ok && !head_only) return response_content(s->batch->iob, r) == 0;
	response_drop(r);
	return ok;
}

bool stream_fill(struct stream *s, struct exchange *x, struct response *r, struct slice block, uint64_t content_length,
				 bool sent) {
	const bool head_only = x->request->method == METHOD_HEAD;
	const enum streams_hold hold = streams_hold_of(x->request, r);
	if (sent) block.length = 0;
	if (!add_response(s, r, block, head_only)) {
		stream_close(s);
		return false;
	}
	s->holds = hold;
	if (hold) s->streams->held[hold]++;
	s->block_length = block.length;
	s->ended = sent && !iob_bytesleft(s->batch->iob);
	s->batch->responses = 1;
	s->batch->sampled = (uint8_t)counters_sample();
	if (sent && s->batch->sampled) response_batch_time(s->batch, s->ended);
	exchange_note(x, s->batch, r->status, r->user, head_only ? 0 : content_length);
	stream_drop_early(s);
	stream_account(s);
	return true;
}

/* --- waits --- */

bool streams_give_up_waiting(struct streams *t, int64_t since_ns) {
	bool any = false;
	for (const struct stream *s = t->first; s; s = s->next) {
		if (!stream_waits_for_job(s) || s->exchange->waits_since_ns > since_ns) continue;
		exchange_give_up(s->exchange);
		any = true;
	}
	return any;
}

/* Answers the exchange of the stream. Returns false if memory runs out; then the stream has been freed. */
static bool answer_exchange(struct stream *s, struct response *r) {
	struct exchange *x = s->exchange;
	char *const block = WORKSPACE(STREAMS_BLOCK);
	uint64_t length = 0;
	/* a client that waits for a 100, or for a tunnel, sends no more */
	s->discards |= s->receiving && (x->request->expect_continue || x->request->websocket);
	s->receiving &= !s->discards;
	const struct slice written = streams_block(s->streams, r, block, &length);
	if (!stream_fill(s, x, r, written, length, false)) return false;
	s->batch->started_ns = x->started_ns;
	exchange_end(x);
	s->exchange = NULL;
	return true;
}

bool stream_answer_again(struct stream *s) {
	struct streams *t = s->streams;
	struct exchange *x = s->exchange;
	struct response r;
	t->room_changed |= x->proxied != NULL;
	x->arrival.may_wait = t->waiting_size < STREAMS_WAITING;
	const enum exchange_next next = exchange_again(x, &r);
	if (next == EXCHANGE_PASSED_ON) stream_relay_begin(s);
	if (next == EXCHANGE_ANSWERED) s->awaits = streams_hold_of(x->request, &r);
	if (next == EXCHANGE_ANSWERED && !streams_may_hold(t, s->awaits)) {
		response_drop(&r);
		stream_drop_early(s); /* it will not be passed on */
	} else if (next == EXCHANGE_ANSWERED && !answer_exchange(s, &r)) {
		return false;
	}
	stream_account(s);
	return true;
}

/* Called when the job is done, or the upstream has done something. */
static void ready(void *stream) {
	struct stream *s = stream;
	struct streams *t = s->streams;
	bool ok = true;
	if (t->failed) { /* the connection is being closed */
		stream_close(s);
		return;
	}
	if (stream_is_passed_on(s)) stream_relay_ready(s);
	else ok = stream_answer_again(s);
	(ok ? t->functions->send : t->functions->close)(t->connection);
}

bool streams_keep(struct streams *t, struct stream_request *asked, struct response *r) {
	const enum streams_hold awaits = r->status ? streams_hold_of(asked->exchange.request, r) : HOLDS_NOTHING;
	struct stream *s = stream_open(t, asked);
	if (r->status) response_drop(r);
	if (!s) return false;
	s->awaits = awaits;
	s->exchange = exchange_keep(&asked->exchange, r, 0);
	if (!s->exchange) {
		stream_close(s);
		return false;
	}
	s->exchange->carried = s;
	s->exchange->ready = ready;
	s->exchange->arrival.client = &s->client;
	s->exchange->arrival.proxy = &s->peer;
	if (s->exchange->proxied) stream_relay_begin(s);
	t->progress = true;
	stream_account(s);
	return true;
}
