/* stream_pass.c - see stream.h. */
#include "gatling/http2/stream.h"

#include <stdlib.h>

#include "gatling/base/text.h"
#include "gatling/base/workspace.h"
#include "gatling/exchange/passed_request.h"
#include "gatling/http/field_line.h"
#include "gatling/http/hpack.h"

enum {
	LENGTH_LINE = 64, /* bytes of the line with Content-Length */
	STALLS_MAX = 5,   /* how many times PASSAGE_WAIT_MS a stream may wait for its turn */
	BLOCK_MAX = HPACK_STATUS + RESPONSE_COMMON_BLOCK + HPACK_BOUND(UPSTREAM_LINES_MAX + LENGTH_LINE)
};
_Static_assert((int)BLOCK_MAX <= (int)STREAM_BLOCK_MAX, "a block of an upstream has to fit");

struct stream_pass {
	struct passed_request passed;
	enum stream_pass_next next;
	bool handed; /* the piece of content in the batch belongs to the passage */
	bool tunnel;
	bool begun;      /* content of the request, or a head of a response, has come */
	bool closed;     /* the trailer fields are in the batch, or there are none */
	size_t come;     /* bytes of the content of the request that have not yet counted as progress */
	unsigned stalls; /* passage_stalls() when the passage was last ready */
};

enum stream_pass_next stream_pass_next(const struct stream *s) { return s->pass->next; }

/* --- the response --- */

static void give_batch_back(struct http2 *h, struct stream *s) {
	if (s->batch) response_batch_return(h->context->batches, s->batch);
	s->batch = NULL;
}

/* Adds a head to the batch as a header block. A tunnel's has the status 200 (RFC 8441, section 5). Returns false if
 * memory runs out. */
static bool add_head(const struct http2 *h, struct stream *s) {
	char *const block = WORKSPACE(BLOCK_MAX);
	struct stream_pass *p = s->pass;
	struct slice lines;
	char length[LENGTH_LINE], *at;
	const struct upstream_response *head = passage_head(p->passed.passage, &lines);
	bool interim = head->status < 200 && head->status != 101;
	int status = head->status == 101 ? 200 : head->status;
	at = block + hpack_status(status, block);
	if (!interim) at = text_copy(at, h->context->common_block[h->secure]);
	at += hpack_fields(lines, at);
	if (head->framing == BODY_LENGTH) {
		const char *end = field_line_put_length(length, head->content_length);
		at += hpack_fields((struct slice){.at = length, .length = (size_t)(end - length)}, at);
	}
	s->block_length = (size_t)(at - block);
	if (!interim) p->passed.status = status;
	return iob_addcopy(s->batch->iob, block, s->block_length) == 0;
}

static bool add_trailers(struct stream *s, struct slice lines) {
	char *const block = WORKSPACE(HPACK_BOUND(UPSTREAM_TRAILERS_MAX));
	s->block_length = hpack_fields(lines, block);
	return iob_addcopy(s->batch->iob, block, s->block_length) == 0;
}

static void take_head(struct http2 *h, struct stream *s) {
	struct passage *passage = s->pass->passed.passage;
	passage_take_head(passage);
	if (passage_state(passage) != PASSAGE_TUNNEL) return;
	s->pass->tunnel = true;
	passed_request_slim(&s->pass->passed);
	h->tunnels++;
	if (s->receiving) return;
	passage_put_end(passage, (struct slice){0});
	passage_flush(passage);
}

/* Fills the batch, if it is empty, with a head, a piece of content or trailer fields, and sets p->next. */
static void fill(struct http2 *h, struct stream *s) {
	struct stream_pass *p = s->pass;
	struct passage *passage = p->passed.passage;
	while (!s->batch && p->next != STREAM_PASS_BROKEN) {
		enum passage_state state = passage_state(passage);
		struct slice piece = {0};
		p->next = STREAM_PASS_WAITS;
		if (state <= PASSAGE_WAITS) return;
		const struct slice trailers =
			state == PASSAGE_ENDED && !p->closed ? passage_trailers(passage) : (struct slice){0};
		p->closed = state == PASSAGE_ENDED;
		if (state >= PASSAGE_ENDED && !trailers.length) {
			if (state == PASSAGE_ENDED) p->next = STREAM_PASS_DONE;
			else p->next = p->passed.status ? STREAM_PASS_BROKEN : STREAM_PASS_FAILED;
			return;
		}
		p->begun = true;
		const bool block = state == PASSAGE_HEAD || trailers.length;
		if (!block) piece = passage_content(passage);
		if (!block && !piece.length) {
			if (passage_state(passage) == state) return;
			continue;
		}
		s->batch = response_batch_take(h->context->batches);
		bool ok = s->batch;
		if (ok && piece.length) ok = iob_addbuf(s->batch->iob, piece.at, piece.length, NULL, NULL) == 0;
		else if (ok) ok = trailers.length ? add_trailers(s, trailers) : add_head(h, s);
		if (!ok) {
			give_batch_back(h, s);
			s->block_length = 0;
			p->next = STREAM_PASS_BROKEN;
			return;
		}
		p->handed = piece.length;
		p->passed.bytes += piece.length;
		if (state == PASSAGE_HEAD) take_head(h, s);
	}
}

void stream_pass_taken(struct http2 *h, struct stream *s) {
	give_batch_back(h, s);
	if (s->pass->handed) passage_take(s->pass->passed.passage);
	s->pass->handed = false;
	h->room_changed |= h->share.starved;
	fill(h, s);
}

/* Returns whether the client may send content of the request, but does not. */
static bool lacks_content(const struct http2 *h, const struct stream *s) {
	const struct stream_pass *p = s->pass;
	bool waits_for_100 = !p->begun && passed_request_kept(&p->passed)->expect_continue;
	bool can_send = h->receive_window >= HTTP2_WINDOW_DEFAULT / 2 && !passage_unsent(p->passed.passage);
	return s->receiving && !p->tunnel && !waits_for_100 && can_send;
}

/* Content is expected from the client only if the windows allow it; other streams use the connection's window, too. */
bool stream_pass_waits_for_client(const struct http2 *h, const struct stream *s) {
	return s->batch || lacks_content(h, s);
}

/* Ends a stream that makes no progress while others on the connection do: at once if the client has stopped it, by its
 * window or by sending no content; otherwise when it has had no turn for a long time. */
static void end_stalled(struct http2 *h, struct stream *s) {
	struct passage *passage = s->pass->passed.passage;
	const bool stopped = s->batch ? s->send_window <= 0 : lacks_content(h, s);
	if (s->pass->stalls < (stopped ? 1 : STALLS_MAX)) return;
	passage_fail(passage, 408);
	give_batch_back(h, s);
	s->block_length = 0;
}

/* Called when the passage has made progress, or has stalled. */
static void ready(void *stream) {
	struct stream *s = stream;
	struct http2 *h = s->http2;
	if (h->failed) { /* the connection is being closed */
		stream_close(h, s);
		return;
	}
	const unsigned stalls = passage_stalls(s->pass->passed.passage);
	const bool stalled = stalls > s->pass->stalls;
	s->pass->stalls = stalls;
	if (stalled) end_stalled(h, s);
	fill(h, s);
	stream_account(h, s);
	h->progress |= !stalled;
	h->room_changed = true;
	h->functions->send(h->connection);
}

/* --- the content of the request --- */

bool stream_pass_put(struct http2 *h, struct stream *s, struct slice content, const struct slice *trailers) {
	struct stream_pass *p = s->pass;
	struct passage *passage = p->passed.passage;
	h->room_changed = true;
	if (passed_request_kept(&p->passed)->websocket && !p->tunnel) return p->passed.status; /* refused: it is dropped */
	if (content.length && passage_put(passage, content) != content.length) return false;
	if (trailers) passage_put_end(passage, *trailers);
	p->begun = true;
	p->come += content.length;
	if (p->come >= PASSAGE_CONTENT_LEAST || trailers) {
		h->progress = true;
		p->come = 0;
	}
	return true;
}

void stream_pass_flush(struct http2 *h) {
	h->unflushed = false;
	for (struct stream *s = h->first; s; s = s->next) {
		if (!s->pass) continue;
		passage_flush(s->pass->passed.passage);
		fill(h, s); /* the passage may have failed */
		stream_account(h, s);
	}
}

void stream_pass_make_room(struct http2 *h, struct http2_output *out) {
	enum { UPDATE = FRAME_HEADER + 4 };
	int64_t held = 0;
	if (!h->room_changed || http2_output_room(out) < (h->open + 1) * UPDATE) return;
	h->room_changed = false;
	bool feeds = h->share.starved;
	h->share.starved = false;
	for (struct stream *s = h->first; s; s = s->next) {
		held += (int64_t)s->early_length;
		struct passage *passage = s->pass ? s->pass->passed.passage : NULL;
		int64_t unsent = passage ? (int64_t)passage_unsent(passage) : 0;
		held += unsent;
		if (s->receiving && !(s->waiting && kept_request_waits_for_job(s->waiting)))
			stream_open_window(h, s->id, &s->receive_window, HTTP2_WINDOW_DEFAULT - unsent, out);
		if (feeds && passage) {
			passage_feed(passage);
			fill(h, s);
		}
	}
	stream_open_window(h, 0, &h->receive_window, HTTP2_PASSED_CONTENT - held, out);
}

/* --- the beginning and the end --- */

bool stream_pass_begin(struct http2 *h, struct stream *s, const struct request *q, const struct response *r) {
	struct stream_pass *p = calloc(1, sizeof *p);
	const struct arrived_request arrived = {.request = q,
											.kept = s->waiting,
											.started_ns = batch_pool_now_ns(h->context->batches),
											.client = &s->client,
											.forwarding = h->forwarding,
											.proxy = h->peer,
											.port = h->port,
											.secure = h->secure,
											.content_first = q->framing == BODY_LENGTH && !q->expect_continue,
											.share = &h->share};
	if (!p || !passed_request_begin(&p->passed, h->context->upstreams, &arrived, r)) {
		free(p);
		return false;
	}
	const struct slice early = {.at = s->early, .length = s->early_length - s->early_trailers},
					   trailers = slice_rest((struct slice){.at = s->early, .length = s->early_length}, early.length);
	if (s->waiting) h->waiting_size -= s->waiting->memory;
	s->waiting = NULL;
	s->pass = p;
	h->passes++;
	h->progress = true;
	passage_on_ready(p->passed.passage, ready, s);
	bool ok = s->received == early.length; /* otherwise some was dropped */
	if (ok && early.length) ok = stream_pass_put(h, s, early, NULL);
	if (ok && q->framing != BODY_NONE && !s->receiving) ok = stream_pass_put(h, s, (struct slice){0}, &trailers);
	stream_drop_early(h, s);
	if (!ok) p->next = STREAM_PASS_BROKEN;
	else passage_flush(p->passed.passage);
	fill(h, s);
	stream_account(h, s);
	return true;
}

struct kept_request *stream_pass_end(struct http2 *h, struct stream *s) {
	struct stream_pass *p = s->pass;
	if (h->unflushed) passage_flush(p->passed.passage); /* content that came before a RST_STREAM */
	give_batch_back(h, s);
	h->passes--;
	h->tunnels -= p->tunnel;
	h->room_changed = true;
	struct kept_request *kept = passed_request_end(&p->passed, h->context->batches, &s->client, COUNT_HTTP2);
	free(p);
	s->pass = NULL;
	return kept;
}

size_t stream_pass_memory(const struct stream *s) { return sizeof *s->pass + passed_request_memory(&s->pass->passed); }
