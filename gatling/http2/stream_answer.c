/* stream_answer.c - see stream.h: turns responses into header blocks and content, at once or after a job. */
#include <stdlib.h>

#include "gatling/base/text.h"
#include "gatling/base/workspace.h"
#include "gatling/http2/http2.h"
#include "gatling/http2/stream.h"
#include "gatling/site/response.h"

/* Writes the table size update with which the next block has to begin, if any. Returns the number of bytes written. */
static size_t put_table_size(struct http2 *h, char *at) {
	size_t n = h->shrink_table;
	if (n) *at = 0x20; /* dynamic table size update: 0 */
	h->shrink_table = false;
	return n;
}

/* Returns whether a response has only the fields of its representation, whose block is ready. */
static bool has_ready_block(const struct response *r) {
	return r->status == 200 && r->representation && !r->lines.length;
}

/* Writes the header block of a response to block (STREAM_BLOCK_MAX bytes). Returns it, or an absent slice if random
 * bytes that it needs are not available. */
static struct slice make_block(struct http2 *h, struct response *r, char *block, uint64_t *content_length) {
	char *const lines = WORKSPACE(RESPONSE_FIELDS_MAX);
	char *at = text_copy(block + hpack_status(r->status, block), h->context->common_block[h->secure]);
	if (has_ready_block(r)) {
		*content_length = r->representation->size;
		at = text_copy(at, representation_block(r->representation));
	} else {
		size_t length = response_fields(r, lines, content_length);
		if (!length) return (struct slice){0};
		at += hpack_fields((struct slice){.at = lines, .length = length}, at);
	}
	return (struct slice){.at = block, .length = (size_t)(at - block)};
}

void stream_output_block(struct http2 *h, struct http2_output *out, uint32_t id, struct slice block, bool end) {
	enum frame_type type = FRAME_HEADERS;
	while (block.length) {
		size_t n = block.length < FRAME_PAYLOAD_MAX ? block.length : FRAME_PAYLOAD_MAX - 1;
		unsigned flags = (type == FRAME_HEADERS && end ? FRAME_FLAG_END_STREAM : 0) |
						 (n == block.length ? FRAME_FLAG_END_HEADERS : 0);
		char *payload = out->at + FRAME_HEADER;
		size_t first = type == FRAME_HEADERS ? put_table_size(h, payload) : 0;
		memcpy(payload + first, block.at, n);
		out->at = frame_header(out->at, first + n, type, flags, id) + first + n;
		block.at += n;
		block.length -= n;
		type = FRAME_CONTINUATION;
	}
}

size_t stream_block_frames(size_t length) { return length + 1 + (length / (FRAME_PAYLOAD_MAX - 1) + 1) * FRAME_HEADER; }

/* Returns whether a response holds an open file, or memory for content that is generated while it is sent. */
static bool holds_resources(const struct response *r) {
	return r->source.owner ||
		   (r->representation && r->status != 304 && (r->representation->fd != -1 || r->representation->gzipped));
}

/* Gives the stream its response, whose representation and source it takes over. If out is not NULL, not blocked and has
 * room, writes the header block at once, since it needs no window. Returns false if memory runs out; then the stream
 * has been freed. */
static bool fill_stream(struct http2 *h, struct stream *s, struct exchange *x, struct response *r,
						struct http2_output *out) {
	uint64_t length = 0;
	struct slice block = make_block(h, r, WORKSPACE(STREAM_BLOCK_MAX), &length);
	bool head_only = x->request->method == METHOD_HEAD,
		 ok = block.at && (s->batch = response_batch_take(h->context->exchanges->batches));
	bool now = ok && out && !out->blocked && !s->receiving &&
			   http2_output_room(out) >= HTTP2_FRAMES - HTTP2_BATCH + stream_block_frames(block.length);
	bool holds_file = holds_resources(r) && !head_only;
	if (ok && !now) ok = iob_addcopy(s->batch->iob, block.at, block.length) == 0;
	if (!ok || head_only) response_drop(r);
	else ok = response_content(s->batch->iob, r) == 0;
	if (!ok) {
		stream_close(h, s);
		return false;
	}
	s->holds_file = holds_file;
	h->files += holds_file;
	s->block_length = now ? 0 : block.length;
	s->ended = now && !iob_bytesleft(s->batch->iob);
	if (now) stream_output_block(h, out, s->id, block, s->ended);
	s->batch->responses = 1;
	s->batch->sampled = (uint8_t)counters_sample();
	if (now && s->batch->sampled) response_batch_time(s->batch, s->ended);
	exchange_note(x, s->batch, r->status, r->user, head_only ? 0 : length);
	stream_drop_early(h, s);
	stream_account(h, s);
	return true;
}

static bool answer_later(struct http2 *h, struct stream_request *asked, struct response *r, struct http2_output *out) {
	struct stream *s = stream_open(h, asked);
	if (!s) {
		response_drop(r);
		return false;
	}
	if (!fill_stream(h, s, &asked->exchange, r, out)) return false;
	if (s->ended) stream_end(h, s, out);
	return true;
}

void stream_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out) {
	char block[HPACK_STATUS + RESPONSE_COMMON_BLOCK];
	char *end = text_copy(block + hpack_status(431, block), h->context->common_block[h->secure]);
	struct slice whole = {.at = block, .length = (size_t)(end - block)};
	struct exchange unknown;
	stream_begin_exchange(h, &unknown, NULL, &h->peer);
	exchange_note(&unknown, NULL, 431, (struct slice){0}, 0);
	if (http2_output_room(out) >= stream_block_frames(whole.length)) stream_output_block(h, out, id, whole, true);
}

/* --- waiting --- */

bool http2_give_up_waiting(struct http2 *h, int64_t since_ns) {
	bool any = false;
	for (const struct stream *s = h->first; s; s = s->next) {
		if (!stream_waits_for_job(s) || s->exchange->waits_since_ns > since_ns) continue;
		exchange_give_up(s->exchange);
		any = true;
	}
	return any;
}

static struct arrival arrival_of(const struct http2 *h, const struct peer *client) {
	return (struct arrival){.client = client,
							.forwarding = h->forwarding,
							.proxy = &h->peer,
							.port = h->port,
							.secure = h->secure,
							.copied = true,
							.may_wait = h->waiting_size < HTTP2_WAITING};
}

void stream_begin_exchange(struct http2 *h, struct exchange *x, const struct request *q, const struct peer *client) {
	exchange_clear(x);
	x->context = h->context->exchanges;
	x->carrier = &stream_carrier;
	x->request = q;
	x->arrival = arrival_of(h, client);
	x->started_ns = batch_pool_now_ns(h->context->exchanges->batches);
	x->share = &h->share;
}

/* Returns whether the response has to wait until one of HTTP2_FILES has been sent. */
static bool must_wait_for_file(const struct http2 *h, const struct response *r) {
	return holds_resources(r) && h->files >= HTTP2_FILES;
}

bool stream_answer_again(struct http2 *h, struct stream *s) {
	struct exchange *x = s->exchange;
	struct response r;
	h->room_changed |= x->proxied != NULL;
	x->arrival = arrival_of(h, &s->client);
	const enum exchange_next next = exchange_again(x, &r);
	if (next == EXCHANGE_PASSED_ON) stream_relay_begin(h, s);
	if (next == EXCHANGE_ANSWERED && must_wait_for_file(h, &r)) {
		response_drop(&r);
		stream_drop_early(h, s); /* it will not be passed on */
	} else if (next == EXCHANGE_ANSWERED) {
		/* a client that waits for a 100, or for a tunnel, sends no more */
		s->discards |= s->receiving && (x->request->expect_continue || x->request->websocket);
		s->receiving &= !s->discards;
		if (!fill_stream(h, s, x, &r, NULL)) return false;
		s->batch->started_ns = x->started_ns;
		exchange_end(x);
		s->exchange = NULL;
	}
	stream_account(h, s);
	return true;
}

/* Called when the job is done, or the upstream has done something. */
static void ready(void *stream) {
	struct stream *s = stream;
	struct http2 *h = s->http2;
	bool ok = true;
	if (h->failed) { /* the connection is being closed */
		stream_close(h, s);
		return;
	}
	if (stream_is_passed_on(s)) stream_relay_ready(h, s);
	else ok = stream_answer_again(h, s);
	(ok ? h->functions->send : h->functions->close)(h->connection);
}

bool stream_keep(struct http2 *h, struct stream_request *asked, const struct response *r) {
	struct stream *s = stream_open(h, asked);
	if (!s) return false;
	s->exchange = exchange_keep(&asked->exchange, r, 0);
	if (!s->exchange) {
		stream_close(h, s);
		return false;
	}
	s->exchange->carried = s;
	s->exchange->ready = ready;
	s->exchange->arrival.client = &s->client;
	if (s->exchange->proxied) stream_relay_begin(h, s);
	h->progress = true;
	stream_account(h, s);
	return true;
}

/* --- at once --- */

/* Returns whether a file in memory can be written at once: no other stream is open, and there is room. */
static bool can_answer_at_once(const struct http2 *h, const struct stream_request *asked, const struct response *r,
							   const struct slice *content, size_t room) {
	size_t overhead = 2 * FRAME_HEADER + 1 + HPACK_STATUS + h->context->common_block[h->secure].length;
	if (h->open || asked->receiving || !has_ready_block(r)) return false;
	if (asked->exchange.request->method != METHOD_HEAD && !content->at) return false;
	return content->length <= FRAME_PAYLOAD_MAX && (int64_t)content->length <= h->initial_window &&
		   (int64_t)content->length <= h->send_window &&
		   overhead + representation_block(r->representation).length + content->length <= room;
}

/* Writes two frame headers, blocks that are ready, and the file. */
static void answer_at_once(struct http2 *h, const struct stream_request *asked, struct response *r,
						   struct slice content, struct http2_output *out) {
	char *block = out->at + FRAME_HEADER;
	char *at = block + put_table_size(h, block);
	at = text_copy(at + hpack_status(r->status, at), h->context->common_block[h->secure]);
	at = text_copy(at, representation_block(r->representation));
	unsigned flags = FRAME_FLAG_END_HEADERS | (content.length ? 0 : FRAME_FLAG_END_STREAM);
	frame_header(out->at, (size_t)(at - block), FRAME_HEADERS, flags, asked->id);
	out->at = at;
	if (content.length)
		http2_output_frame(h, out, FRAME_DATA, FRAME_FLAG_END_STREAM, asked->id, content.at, content.length);
	h->send_window -= (int64_t)content.length;
	h->sent += content.length;
	response_drop(r);
}

/* Counts the times of a response that needed no stream. */
static void count_times(const struct http2 *h) {
	unsigned answers = counters_sample();
	if (!answers) return;
	int64_t ns = io_read_clock() - batch_pool_now_ns(h->context->exchanges->batches);
	count_first_byte(ns, answers);
	count_duration(ns, answers);
}

bool stream_answer(struct http2 *h, struct stream_request *asked, struct response *r, struct http2_output *out) {
	struct slice content = asked->exchange.request->method == METHOD_HEAD ? (struct slice){0} : response_in_memory(r);
	size_t reserved = HTTP2_FRAMES - HTTP2_BATCH,
		   room = http2_output_room(out); /* reserved: for frames that must be written */
	h->progress = true;
	if (must_wait_for_file(h, r)) {
		response_drop(r);
		return stream_keep(h, asked, r);
	}
	if (out->blocked || room < reserved || !can_answer_at_once(h, asked, r, &content, room - reserved))
		return answer_later(h, asked, r, out);
	answer_at_once(h, asked, r, content, out);
	count_times(h);
	exchange_note(&asked->exchange, NULL, r->status, r->user, content.length);
	return true;
}

void stream_continue(struct http2 *h, uint32_t id, struct http2_output *out) {
	char block[1 + HPACK_STATUS];
	size_t n = put_table_size(h, block);
	n += hpack_status(100, block + n);
	http2_output_frame(h, out, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, id, block, n);
}
