/* http3_request.c - see session.h: requests, which are field sections and content. */
#include "gatling/base/workspace.h"
#include "gatling/http3/http3.h"
#include "gatling/http3/session.h"

void http3_reset(struct http3 *h, struct http3_stream *q, enum http3_error error) {
	http3_give_up(h, q);
	h->transport->reset(h->streams.connection, q->id, error);
}

/* Does what a result of streams/ asks for. */
static enum http3_error conclude(struct http3 *h, struct http3_stream *q, enum streams_taken taken) {
	switch (taken) {
	case STREAMS_TAKEN: break;
	case STREAMS_MALFORMED: http3_reset(h, q, HTTP3_MESSAGE_ERROR); break;
	case STREAMS_REFUSED: http3_reset(h, q, HTTP3_REQUEST_REJECTED); break;
	case STREAMS_TOO_MUCH: http3_reset(h, q, HTTP3_EXCESSIVE_LOAD); break;
	case STREAMS_NO_MEMORY: return HTTP3_INTERNAL_ERROR;
	}
	return HTTP3_OK;
}

/* Opens a stream for a response. */
static bool answer_stream(struct http3 *h, struct stream_request *asked, struct response *r) {
	struct streams *t = &h->streams;
	t->progress = true;
	if (!streams_may_hold(t, streams_hold_of(asked->exchange.request, r))) return streams_keep(t, asked, r);
	char *const room = WORKSPACE(STREAMS_BLOCK);
	struct stream *s = stream_open(t, asked);
	uint64_t length = 0;
	if (!s) {
		response_drop(r);
		return false;
	}
	const struct slice block = streams_block(t, r, room, &length);
	return stream_fill(s, &asked->exchange, r, block, length, false);
}

static enum http3_error answer_request(struct http3 *h, struct http3_stream *q, struct stream_request *asked,
									   int status) {
	static const char heads_100[] = {0, 0, (char)0xff, 0}; /* :status 100 is entry 63 of the static table */
	struct response r;
	bool continues;
	const enum exchange_next next = streams_decide(asked, status, &r, &continues);
	if (continues && !http3_put_frame(h, q, HTTP3_FRAME_HEADERS, (struct slice){.at = heads_100, .length = 4}))
		return HTTP3_INTERNAL_ERROR;
	const bool ok = next == EXCHANGE_ANSWERED ? answer_stream(h, asked, &r) : streams_keep(&h->streams, asked, &r);
	if (asked->exchange.counted) /* no stream has taken it over */
		limits_return_requests(h->context->exchanges->limits, &asked->client, 1);
	if (!ok) return HTTP3_INTERNAL_ERROR;
	q->deaf = asked->discards;
	return HTTP3_OK;
}

enum http3_error http3_refuse_section(struct http3 *h, struct http3_stream *q) {
	struct stream_request asked = {.id = (uint64_t)q->id, .priority = PRIORITY_DEFAULT, .receiving = true, .own = q};
	struct request unknown = {.line = SLICE("-")};
	if (q->has_head) return conclude(h, q, STREAMS_TOO_MUCH);
	q->has_head = true;
	const enum streams_taken taken = streams_take_request(&h->streams, &asked, &unknown, 431, false);
	return taken == STREAMS_TAKEN ? answer_request(h, q, &asked, 431) : conclude(h, q, taken);
}

enum http3_error http3_take_section(struct http3 *h, struct http3_stream *q, struct slice section, bool ends) {
	char *const text = WORKSPACE(REQUEST_TEXT);
	struct request request;
	struct stream_request asked;
	asked.id = (uint64_t)q->id;
	asked.priority = PRIORITY_DEFAULT;
	if (!q->has_head) unopened_take(&h->unopened, (uint64_t)q->id, &asked.priority);
	asked.receiving = !ends;
	asked.own = q;
	const bool trailers = q->has_head;
	const int status = field_section_decode(h->context->decoder, section, trailers,
											h->context->exchanges->upstreams != NULL, text, &request, &asked.priority);
	if (status == FIELD_SECTION_WRONG) return QPACK_DECOMPRESSION_FAILED;
	if (trailers) {
		q->has_trailers = true;
		if (status) return conclude(h, q, STREAMS_MALFORMED);
		const bool open = q->stream && (q->stream->receiving || q->stream->discards);
		return open ? conclude(h, q, stream_take_trailers(q->stream, request.lines, true)) : HTTP3_OK;
	}
	q->has_head = true;
	if (h->draining && q->id > h->highest) return conclude(h, q, STREAMS_REFUSED);
	/* the memory may grow, see STREAMS_PASSED_CONTENT; that of answers has limits of its own */
	const bool full = http3_kept(h) > h->context->memory_max / 2 + h->streams.share.held;
	const enum streams_taken taken = streams_take_request(&h->streams, &asked, &request, status, full);
	return taken == STREAMS_TAKEN ? answer_request(h, q, &asked, status) : conclude(h, q, taken);
}

enum http3_error http3_take_content(struct http3 *h, struct http3_stream *q, struct slice content, bool ends) {
	struct stream *s = q->stream;
	if (!s || !s->receiving) return HTTP3_OK; /* its response has been sent */
	return conclude(h, q, stream_take_content(s, content, ends));
}
