/* relay.c - see streams.h: streams as the carriers of requests that are passed on. */
#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/exchange/owner_fields.h"
#include "gatling/http/field_line.h"
#include "gatling/streams/streams.h"

enum {
	LENGTH_LINE = 64, /* bytes of the line with Content-Length */
	STALLS_MAX = 5,   /* how many times PROXIED_STALL_MS a stream may wait for its turn */
	BLOCK_MAX = STREAMS_STATUS + RESPONSE_COMMON_BLOCK + STREAMS_FIELDS(OWNER_FIELDS_MAX + LENGTH_LINE)
};
_Static_assert((int)BLOCK_MAX <= (int)STREAMS_BLOCK, "a block of an upstream has to fit");

/* --- the response --- */

static size_t room(const void *stream) {
	const struct stream *s = stream;
	return s->streams->protocol->stream_room(s);
}

static bool take_batch(struct stream *s) {
	return response_batch_take(s->streams->exchanges->batches, BATCH_SMALL, &s->batch);
}

static bool add_block(struct stream *s, struct slice block) {
	s->block_length = block.length;
	return take_batch(s) && iob_addcopy(s->batch->iob, block.at, block.length) == 0;
}

/* A tunnel's head has the status 200 (RFC 8441, section 5). */
static int add_head(void *stream, const struct upstream_response *head, struct slice lines) {
	struct stream *s = stream;
	const struct streams_protocol *p = s->streams->protocol;
	char *const block = WORKSPACE(BLOCK_MAX);
	char length[LENGTH_LINE], *at;
	const bool interim = head->status < 200 && head->status != 101;
	const int status = head->status == 101 ? 200 : head->status;
	at = block + p->status(status, block);
	if (!interim) at = text_copy(at, *s->streams->common_block);
	at += p->fields(lines, at);
	if (head->framing == BODY_LENGTH) {
		const char *end = field_line_put_length(length, head->content_length);
		at += p->fields((struct slice){.at = length, .length = (size_t)(end - length)}, at);
	}
	return add_block(s, (struct slice){.at = block, .length = (size_t)(at - block)}) ? status : 0;
}

static bool add_piece(void *stream, struct slice piece, bool *kept) {
	struct stream *s = stream;
	*kept = true;
	return take_batch(s) && iob_addbuf(s->batch->iob, piece.at, piece.length, NULL, NULL) == 0;
}

static bool add_end(void *stream, struct slice trailers, bool *added) {
	struct stream *s = stream;
	char *const block = WORKSPACE(STREAMS_FIELDS(UPSTREAM_TRAILERS_MAX));
	if (!trailers.length) return true;
	*added = true;
	return add_block(s, (struct slice){.at = block, .length = s->streams->protocol->fields(trailers, block)});
}

/* The batch holds one piece: its turn may come long after that of another stream's. */
#define CARRIER(counted)                                                                                               \
	{                                                                                                                  \
		.protocol = (counted), .checks_length = true, .enough = 1, .room = room, .head = add_head,                     \
		.content = add_piece, .end = add_end                                                                           \
	}
const struct carrier streams_http2 = CARRIER(COUNT_HTTP2), streams_http3 = CARRIER(COUNT_HTTP3);

/* Fills the batch, if it is empty, and sets s->relayed. */
static void relay(struct stream *s) {
	struct exchange *x = s->exchange;
	const bool tunnel = x->tunnel, sent = !s->batch || !iob_bytesleft(s->batch->iob);
	if (s->relayed != RELAY_BROKEN) s->relayed = sent ? exchange_relay(x) : RELAY_WAITS;
	if (s->relayed == RELAY_BROKEN) stream_drop_batch(s);
	if (x->tunnel && !tunnel && !s->receiving) { /* it goes one way only */
		proxied_put_end(x->proxied, (struct slice){0});
		proxied_flush(x->proxied);
	}
	stream_account(s);
}

void stream_relay_taken(struct stream *s) {
	struct streams *t = s->streams;
	stream_drop_batch(s);
	exchange_taken(s->exchange);
	t->room_changed |= t->share.starved;
	relay(s);
}

/* Returns whether the client may send content of the request, but does not. */
static bool lacks_content(const struct stream *s) {
	const struct exchange *x = s->exchange;
	const bool taken = !proxied_unsent(x->proxied) || proxied_holds(x->proxied);
	return s->receiving && !x->tunnel && !exchange_waits_for_100(x) && taken &&
		   s->streams->protocol->receives(s->streams);
}

/* Content is expected from the client only if the windows allow it; other streams use the connection's window, too. */
bool stream_relay_waits_for_client(const struct stream *s) { return s->batch || lacks_content(s); }

/* Ends a stream that makes no progress while others on the connection do: at once if the client has stopped it, by its
 * window or by sending no content; otherwise when it has had no turn for a long time. */
static void end_stalled(struct stream *s) {
	const bool stopped = s->batch ? !s->streams->protocol->stream_room(s) : lacks_content(s);
	if (s->stalls < (stopped ? 1 : STALLS_MAX)) return;
	proxied_fail(s->exchange->proxied, 408);
	stream_drop_batch(s);
	exchange_taken(s->exchange);
}

void stream_relay_ready(struct stream *s) {
	struct streams *t = s->streams;
	const unsigned stalls = proxied_stalls(s->exchange->proxied);
	const bool stalled = stalls > s->stalls;
	s->stalls = stalls;
	if (stalled) end_stalled(s);
	relay(s);
	t->progress |= !stalled;
	t->room_changed = true;
}

/* --- the content of the request --- */

bool stream_relay_put(struct stream *s, struct slice content, const struct slice *trailers) {
	struct exchange *x = s->exchange;
	s->streams->room_changed = true;
	if (x->request->websocket && !x->tunnel) return x->status; /* refused: it is dropped */
	for (size_t put = 0; put < content.length;) put += proxied_put(x->proxied, slice_rest(content, put));
	s->streams->progress |= exchange_put(x, content.length, trailers);
	return true;
}

void streams_flush(struct streams *t) {
	t->unflushed = false;
	for (struct stream *s = t->first; s; s = s->next) {
		if (!stream_is_passed_on(s)) continue;
		proxied_flush(s->exchange->proxied);
		relay(s); /* the proxied request may have failed */
	}
}

size_t stream_held(const struct stream *s) {
	return s->early_length + (stream_is_passed_on(s) ? proxied_unsent(s->exchange->proxied) : 0);
}

void streams_feed(struct streams *t) {
	if (!t->share.starved) return;
	t->share.starved = false;
	for (struct stream *s = t->first; s; s = s->next) {
		if (!stream_is_passed_on(s)) continue;
		proxied_feed(s->exchange->proxied);
		relay(s);
	}
}

void stream_relay_begin(struct stream *s) {
	const struct slice whole = {.at = s->early, .length = s->early_length},
					   early = slice_first(whole, s->early_length - s->early_trailers),
					   trailers = slice_rest(whole, early.length);
	s->relayed = RELAY_WAITS;
	bool ok = s->received == early.length; /* otherwise some was dropped */
	if (ok && early.length) ok = stream_relay_put(s, early, NULL);
	if (ok && s->exchange->request->framing != BODY_NONE && !s->receiving)
		ok = stream_relay_put(s, (struct slice){0}, &trailers);
	stream_drop_early(s);
	if (ok) proxied_flush(s->exchange->proxied);
	else s->relayed = RELAY_BROKEN;
	relay(s);
	s->streams->progress = true;
}
