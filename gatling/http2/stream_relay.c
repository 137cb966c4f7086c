/* stream_relay.c - see stream.h: HTTP/2 as the carrier of requests that are passed on. */
#include "gatling/base/text.h"
#include "gatling/base/workspace.h"
#include "gatling/http/field_line.h"
#include "gatling/http/hpack.h"
#include "gatling/http2/stream.h"

enum {
	LENGTH_LINE = 64, /* bytes of the line with Content-Length */
	STALLS_MAX = 5,   /* how many times PROXIED_WAIT_MS a stream may wait for its turn */
	BLOCK_MAX = HPACK_STATUS + RESPONSE_COMMON_BLOCK + HPACK_BOUND(UPSTREAM_LINES_MAX + LENGTH_LINE)
};
_Static_assert((int)BLOCK_MAX <= (int)STREAM_BLOCK_MAX, "a block of an upstream has to fit");

/* --- the response --- */

static size_t unsent(const void *stream) {
	const struct stream *s = stream;
	return s->batch ? iob_bytesleft(s->batch->iob) : 0;
}

static bool take_batch(struct stream *s) {
	s->batch = response_batch_take(s->http2->context->exchanges->batches);
	return s->batch;
}

static bool add_block(struct stream *s, struct slice block) {
	s->block_length = block.length;
	return take_batch(s) && iob_addcopy(s->batch->iob, block.at, block.length) == 0;
}

/* A tunnel's head has the status 200 (RFC 8441, section 5). */
static int add_head(void *stream, const struct upstream_response *head, struct slice lines) {
	struct stream *s = stream;
	const struct http2 *h = s->http2;
	char *const block = WORKSPACE(BLOCK_MAX);
	char length[LENGTH_LINE], *at;
	const bool interim = head->status < 200 && head->status != 101;
	const int status = head->status == 101 ? 200 : head->status;
	at = block + hpack_status(status, block);
	if (!interim) at = text_copy(at, h->context->common_block[h->secure]);
	at += hpack_fields(lines, at);
	if (head->framing == BODY_LENGTH) {
		const char *end = field_line_put_length(length, head->content_length);
		at += hpack_fields((struct slice){.at = length, .length = (size_t)(end - length)}, at);
	}
	return add_block(s, (struct slice){.at = block, .length = (size_t)(at - block)}) ? status : 0;
}

static bool add_piece(void *stream, struct slice piece, bool *kept) {
	struct stream *s = stream;
	*kept = true;
	return take_batch(s) && iob_addbuf(s->batch->iob, piece.at, piece.length, NULL, NULL) == 0;
}

static bool add_end(void *stream, struct slice trailers) {
	char *const block = WORKSPACE(HPACK_BOUND(UPSTREAM_TRAILERS_MAX));
	return !trailers.length || add_block(stream, (struct slice){.at = block, .length = hpack_fields(trailers, block)});
}

/* The batch holds one piece: its turn may come long after that of another stream's. */
const struct carrier stream_carrier = {.protocol = COUNT_HTTP2,
									   .checks_length = true,
									   .enough = 1,
									   .unsent = unsent,
									   .head = add_head,
									   .content = add_piece,
									   .end = add_end};

/* Fills the batch, if it is empty, and sets s->relayed. */
static void relay(struct http2 *h, struct stream *s) {
	struct exchange *x = s->exchange;
	const bool tunnel = x->tunnel;
	if (s->relayed != RELAY_BROKEN) s->relayed = exchange_relay(x);
	if (s->relayed == RELAY_BROKEN) stream_drop_batch(h, s);
	if (x->tunnel && !tunnel && !s->receiving) { /* it goes one way only */
		proxied_put_end(x->proxied, (struct slice){0});
		proxied_flush(x->proxied);
	}
	stream_account(h, s);
}

void stream_relay_taken(struct http2 *h, struct stream *s) {
	stream_drop_batch(h, s);
	exchange_taken(s->exchange);
	h->room_changed |= h->share.starved;
	relay(h, s);
}

/* Returns whether the client may send content of the request, but does not. */
static bool lacks_content(const struct http2 *h, const struct stream *s) {
	const struct exchange *x = s->exchange;
	const bool taken = !proxied_unsent(x->proxied) || proxied_holds(x->proxied);
	const bool can_send = h->receive_window >= HTTP2_WINDOW_DEFAULT / 2 && taken;
	return s->receiving && !x->tunnel && !exchange_waits_for_100(x) && can_send;
}

/* Content is expected from the client only if the windows allow it; other streams use the connection's window, too. */
bool stream_relay_waits_for_client(const struct http2 *h, const struct stream *s) {
	return s->batch || lacks_content(h, s);
}

/* Ends a stream that makes no progress while others on the connection do: at once if the client has stopped it, by its
 * window or by sending no content; otherwise when it has had no turn for a long time. */
static void end_stalled(struct http2 *h, struct stream *s) {
	const bool stopped = s->batch ? s->send_window <= 0 : lacks_content(h, s);
	if (s->stalls < (stopped ? 1 : STALLS_MAX)) return;
	proxied_fail(s->exchange->proxied, 408);
	stream_drop_batch(h, s);
	exchange_taken(s->exchange);
}

void stream_relay_ready(struct http2 *h, struct stream *s) {
	const unsigned stalls = proxied_stalls(s->exchange->proxied);
	const bool stalled = stalls > s->stalls;
	s->stalls = stalls;
	if (stalled) end_stalled(h, s);
	relay(h, s);
	h->progress |= !stalled;
	h->room_changed = true;
}

/* --- the content of the request --- */

bool stream_relay_put(struct http2 *h, struct stream *s, struct slice content, const struct slice *trailers) {
	struct exchange *x = s->exchange;
	h->room_changed = true;
	if (x->request->websocket && !x->tunnel) return x->status; /* refused: it is dropped */
	if (content.length && proxied_put(x->proxied, content) != content.length) return false;
	h->progress |= exchange_put(x, content.length, trailers);
	return true;
}

void stream_relay_flush(struct http2 *h) {
	h->unflushed = false;
	for (struct stream *s = h->first; s; s = s->next) {
		if (!stream_is_passed_on(s)) continue;
		proxied_flush(s->exchange->proxied);
		relay(h, s); /* the proxied request may have failed */
	}
}

void stream_relay_make_room(struct http2 *h, struct http2_output *out) {
	enum { UPDATE = FRAME_HEADER + 4 };
	int64_t held = 0;
	if (!h->room_changed || http2_output_room(out) < (h->open + 1) * UPDATE) return;
	h->room_changed = false;
	bool feeds = h->share.starved;
	h->share.starved = false;
	for (struct stream *s = h->first; s; s = s->next) {
		held += (int64_t)s->early_length;
		struct proxied *proxied = s->exchange ? s->exchange->proxied : NULL;
		int64_t unsent = proxied ? (int64_t)proxied_unsent(proxied) : 0;
		held += unsent;
		if (s->receiving && !stream_waits_for_job(s))
			stream_open_window(h, s->id, &s->receive_window, HTTP2_WINDOW_DEFAULT - unsent, out);
		if (feeds && proxied) {
			proxied_feed(proxied);
			relay(h, s);
		}
	}
	stream_open_window(h, 0, &h->receive_window, HTTP2_PASSED_CONTENT - held, out);
}

void stream_relay_begin(struct http2 *h, struct stream *s) {
	const struct slice whole = {.at = s->early, .length = s->early_length},
					   early = slice_first(whole, s->early_length - s->early_trailers),
					   trailers = slice_rest(whole, early.length);
	s->relayed = RELAY_WAITS;
	bool ok = s->received == early.length; /* otherwise some was dropped */
	if (ok && early.length) ok = stream_relay_put(h, s, early, NULL);
	if (ok && s->exchange->request->framing != BODY_NONE && !s->receiving)
		ok = stream_relay_put(h, s, (struct slice){0}, &trailers);
	stream_drop_early(h, s);
	if (ok) proxied_flush(s->exchange->proxied);
	else s->relayed = RELAY_BROKEN;
	relay(h, s);
	h->progress = true;
}
