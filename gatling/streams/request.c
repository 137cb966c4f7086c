/* request.c - see streams.h: requests, and their content, which is counted, and dropped or passed on. */
#include "gatling/streams/streams.h"

static bool is_connect(const struct request *request) {
	struct slice method = SLICE("CONNECT ");
	return !request->websocket && request->line.length > method.length &&
		   memcmp(request->line.at, method.at, method.length) == 0;
}

/* Sets the framing that the content would have in HTTP/1.1, and whether the client waits for a 100 before it. */
static void set_framing(struct request *q, bool receiving) {
	bool has_length = request_has(q, FIELD_CONTENT_LENGTH);
	if (!receiving || q->websocket) q->framing = BODY_NONE;
	else q->framing = has_length ? BODY_LENGTH : BODY_CHUNKED;
	q->expect_continue &= q->framing != BODY_NONE;
}

/* Returns the client of a request: the one that a trusted proxy names, or the other end of the connection. */
static struct peer client_of(const struct streams *t, const struct request *q) {
	struct peer client;
	return t->forwarding && forwarded_client(t->exchanges->trust, t->forwarding, q, &client) ? client : t->peer;
}

void streams_begin_exchange(struct streams *t, struct exchange *x, const struct request *q, const struct peer *client) {
	exchange_clear(x);
	x->context = t->exchanges;
	x->carrier = t->protocol->carrier;
	x->request = q;
	x->arrival = (struct arrival){.client = client,
								  .forwarding = t->forwarding,
								  .proxy = &t->peer,
								  .port = t->port,
								  .secure = t->secure,
								  .copied = true,
								  .may_wait = t->waiting_size < STREAMS_WAITING};
	x->started_ns = t->exchanges->site->now_ns;
	x->share = &t->share;
}

/* Logs a request that is refused by a reset of its stream. */
static enum streams_taken refuse(struct stream_request *asked, int status, enum streams_taken taken) {
	exchange_note(&asked->exchange, NULL, status, (struct slice){0}, 0);
	return taken;
}

enum streams_taken streams_take_request(struct streams *t, struct stream_request *asked, struct request *q, int status,
										bool full) {
	asked->client = client_of(t, q);
	streams_begin_exchange(t, &asked->exchange, q, &asked->client);
	if (status == REQUEST_MALFORMED) return refuse(asked, 400, STREAMS_MALFORMED);
	if (t->open >= STREAMS_MAX) return refuse(asked, 503, STREAMS_REFUSED);
	if (!asked->receiving && q->content_length) return refuse(asked, 400, STREAMS_MALFORMED);
	if (t->passes && full) return refuse(asked, 503, STREAMS_REFUSED);
	set_framing(q, asked->receiving);
	asked->discards = asked->receiving && (status || is_connect(q)); /* section 8.5: the data is not content */
	asked->receiving &= !asked->discards;
	return STREAMS_TAKEN;
}

enum exchange_next streams_decide(struct stream_request *asked, int status, struct response *r, bool *continues) {
	struct exchange *x = &asked->exchange;
	const struct request *q = x->request;
	enum exchange_next next = EXCHANGE_ANSWERED;
	if (status) response_status(r, status);
	else next = exchange_begin(x, r);
	const bool answered = next == EXCHANGE_ANSWERED, expects = asked->receiving && answered && q->expect_continue;
	/* RFC 9110, section 10.1.1: a 100 or the final status is sent at once; an upstream decides for itself */
	*continues = expects && r->status < 400;
	asked->discards |= expects && !*continues;
	asked->discards |= asked->receiving && answered && (r->status == 413 || q->websocket);
	asked->receiving &= !asked->discards;
	return next;
}

/* Returns whether the request may still be passed on, so that its content has to be kept. */
static bool may_be_passed_on(const struct stream *s) {
	return s->streams->exchanges->upstreams && stream_waits_for_job(s);
}

/* Passes content on. It is sent when all that has come together has been handled. */
static enum streams_taken pass_on(struct stream *s, struct slice content, const struct slice *trailers) {
	s->streams->unflushed = true;
	return stream_relay_put(s, content, trailers) ? STREAMS_TAKEN : STREAMS_MALFORMED;
}

static enum streams_taken keep_early(struct stream *s, struct slice content) {
	return stream_keep_early(s, content) ? STREAMS_TAKEN : STREAMS_NO_MEMORY;
}

enum streams_taken stream_take_trailers(struct stream *s, struct slice lines, bool ends) {
	const bool early = !ends || (s->has_length && s->received != s->expected);
	if (early && !s->discards) return STREAMS_MALFORMED;
	s->receiving = false;
	if (stream_is_passed_on(s)) return pass_on(s, (struct slice){0}, &lines);
	if (!may_be_passed_on(s)) return STREAMS_TAKEN;
	s->early_trailers = lines.length;
	return keep_early(s, lines);
}

enum streams_taken stream_take_content(struct stream *s, struct slice content, bool ends) {
	const struct slice no_trailers = {0};
	s->received += content.length;
	s->receiving = !ends;
	if (s->has_length && (s->received > s->expected || (ends && s->received != s->expected))) return STREAMS_MALFORMED;
	if (stream_is_passed_on(s)) return pass_on(s, content, ends ? &no_trailers : NULL);
	if (s->received > BODY_MAX) return STREAMS_TOO_MUCH;
	return may_be_passed_on(s) ? keep_early(s, content) : STREAMS_TAKEN;
}
