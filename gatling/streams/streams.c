/* streams.c - see streams.h: the list of streams, and what each holds. */
#include "gatling/streams/streams.h"

#include <stdlib.h>

void streams_set_peer(struct streams *t, const struct peer *peer, enum forwarding forwarding) {
	t->peer = *peer;
	t->forwarding = forwarding;
}

void streams_begin(struct streams *t, const struct streams_connection *functions, void *connection,
				   const struct peer *peer, enum forwarding forwarding, unsigned port, bool secure) {
	t->functions = functions;
	t->connection = connection;
	streams_set_peer(t, peer, forwarding);
	t->port = (uint16_t)port;
	t->secure = secure;
	t->share = (struct proxied_share){.most = STREAMS_PASSED_RESPONSES, .room = exchange_room};
}

/* Inserts the stream after the others of its urgency. */
static void link_stream(struct streams *t, struct stream *s) {
	s->previous = t->last;
	while (s->previous && s->previous->priority.urgency > s->priority.urgency) s->previous = s->previous->previous;
	s->next = s->previous ? s->previous->next : t->first;
	*(s->previous ? &s->previous->next : &t->first) = s;
	*(s->next ? &s->next->previous : &t->last) = s;
}

static void unlink_stream(struct streams *t, struct stream *s) {
	*(s->previous ? &s->previous->next : &t->first) = s->next;
	*(s->next ? &s->next->previous : &t->last) = s->previous;
}

struct stream *stream_find(const struct streams *t, uint64_t id) {
	struct stream *s = t->first;
	while (s && s->id != id) s = s->next;
	return s;
}

struct stream *stream_open(struct streams *t, struct stream_request *asked) {
	struct stream *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->id = asked->id;
	s->priority = asked->priority;
	s->receiving = asked->receiving;
	s->discards = asked->discards;
	s->client = asked->client;
	s->peer = t->peer;
	s->counted = asked->exchange.counted;
	asked->exchange.counted = false;
	s->has_length = request_has(asked->exchange.request, FIELD_CONTENT_LENGTH);
	s->expected = asked->exchange.request->content_length;
	s->own = asked->own;
	s->streams = t;
	t->protocol->opened(s);
	link_stream(t, s);
	t->open++;
	count_one(GAUGE_STREAMS);
	return s;
}

void stream_set_priority(struct stream *s, struct priority priority) {
	unlink_stream(s->streams, s);
	s->priority = priority;
	link_stream(s->streams, s);
}

void stream_account(struct stream *s) {
	struct streams *t = s->streams;
	size_t memory = sizeof *s + (s->batch ? response_batch_memory(s->batch) : 0) + s->early_length;
	const size_t kept = s->exchange ? exchange_memory(s->exchange) : 0, waiting = stream_waits(s) ? kept : 0;
	const bool passed = stream_is_passed_on(s), tunnel = passed && s->exchange->tunnel;
	memory += kept;
	t->memory += memory - s->account.memory;
	t->waiting_size += waiting - s->account.waiting;
	t->passes += (unsigned)passed - s->account.passed;
	t->tunnels += (unsigned)tunnel - s->account.tunnel;
	s->account.memory = memory;
	s->account.waiting = waiting;
	s->account.passed = passed;
	s->account.tunnel = tunnel;
}

void stream_drop_batch(struct stream *s) {
	if (s->batch) response_batch_return(s->streams->exchanges->batches, &s->batch);
	s->block_length = 0;
}

bool stream_keep_early(struct stream *s, struct slice content) {
	char *grown = content.length ? realloc(s->early, s->early_length + content.length) : s->early;
	if (content.length && !grown) return false;
	s->early = grown;
	if (content.length) memcpy(grown + s->early_length, content.at, content.length);
	s->early_length += content.length;
	stream_account(s);
	return true;
}

void stream_drop_early(struct stream *s) {
	s->streams->room_changed |= s->early_length > 0;
	free(s->early);
	s->early = NULL;
	s->early_length = s->early_trailers = 0;
}

void stream_close(struct stream *s) {
	struct streams *t = s->streams;
	if (t->protocol->closed) t->protocol->closed(s);
	unlink_stream(t, s);
	if (stream_is_passed_on(s)) {
		t->room_changed = true;
		if (t->unflushed) proxied_flush(s->exchange->proxied); /* content that came before the client's reset */
	} else if (s->batch) {
		response_batch_end(t->exchanges->batches, &s->batch);
	}
	stream_drop_batch(s);
	exchange_end(s->exchange);
	s->exchange = NULL;
	stream_account(s);
	t->memory -= s->account.memory;
	free(s->early);
	if (s->counted) limits_return_requests(t->exchanges->limits, &s->client, 1);
	if (s->holds) t->held[s->holds]--;
	t->open--;
	uncount_one(GAUGE_STREAMS);
	free(s);
}
