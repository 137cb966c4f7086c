/* stream.c - see http2.h and stream.h: answers become frames. */
#include "gatling/http2/stream.h"

#include <stdlib.h>

#include "gatling/base/workspace.h"
#include "gatling/site/response.h"

/* Logged for a client that has gone, or taken its request back, before it was answered (as nginx). */
enum { GONE = 499 };

/* --- streams --- */

/* Appends the stream to those of its urgency. */
static void link_stream(struct http2 *h, struct stream *s) {
	s->previous = h->last;
	while (s->previous && s->previous->priority.urgency > s->priority.urgency) s->previous = s->previous->previous;
	s->next = s->previous ? s->previous->next : h->first;
	*(s->previous ? &s->previous->next : &h->first) = s;
	*(s->next ? &s->next->previous : &h->last) = s;
}

static void unlink_stream(struct http2 *h, struct stream *s) {
	*(s->previous ? &s->previous->next : &h->first) = s->next;
	*(s->next ? &s->next->previous : &h->last) = s->previous;
}

struct stream *stream_find(const struct http2 *h, uint32_t id) {
	struct stream *s = h->first;
	while (s && s->id != id) s = s->next;
	return s;
}

void stream_note_reset(struct http2 *h, uint32_t id) {
	if (id + 2 * HTTP2_RESETS_REMEMBERED > h->highest) *stream_reset_word(h, id) |= stream_reset_bit(id);
}

void stream_set_priority(struct http2 *h, struct stream *s, struct priority priority) {
	unlink_stream(h, s);
	s->priority = priority;
	link_stream(h, s);
}

static bool waits_for_file(const struct stream *s) { return s->waiting && !waiting_for_job(s->waiting); }

static bool waits_for_job(const struct stream *s) { return s->waiting && waiting_for_job(s->waiting); }

int64_t stream_waiting_since(const struct http2 *h) {
	int64_t since = 0;
	for (const struct stream *s = h->waiting_size ? h->first : NULL; s; s = s->next)
		if (waits_for_job(s) && (!since || s->waiting->started_ns < since)) since = s->waiting->started_ns;
	return since;
}

bool stream_give_up_waiting(struct http2 *h, int64_t since_ns) {
	bool any = false;
	for (const struct stream *s = h->first; s; s = s->next) {
		if (!waits_for_job(s) || s->waiting->started_ns > since_ns) continue;
		waiting_request_give_up(s->waiting);
		any = true;
	}
	return any;
}

static void ready(void *stream);

/* Has the request wait; NULL is allowed. */
static void wait_for(struct http2 *h, struct stream *s, struct waiting_request *waiting) {
	s->waiting = waiting;
	if (!waiting) return;
	waiting->ready = ready;
	waiting->owner = s;
	h->waiting_size += waiting->memory;
}

/* Ends the wait. Returns the request. */
static struct waiting_request *end_waiting(struct stream *s) {
	struct waiting_request *waiting = s->waiting;
	s->http2->waiting_size -= waiting->memory;
	s->waiting = NULL;
	return waiting;
}

void stream_account(struct http2 *h, struct stream *s) {
	size_t memory = sizeof *s + (s->response ? response_batch_memory(s->response) : 0) + s->early_length;
	if (s->waiting) memory += s->waiting->memory;
	if (s->pass) memory += stream_pass_memory(s);
	h->memory += memory - s->memory;
	s->memory = memory;
}

void stream_close(struct http2 *h, struct stream *s) {
	unlink_stream(h, s);
	if (s->pass) wait_for(h, s, stream_pass_end(h, s));
	if (s->waiting) {
		(void)stream_log(h, s->waiting->request, (struct slice){0}, GONE, 0);
		waiting_request_free(end_waiting(s));
	}
	if (s->response) {
		response_batch_log(h->context->batches, s->response);
		response_batch_return(h->context->batches, s->response);
	}
	free(s->early);
	if (s->counted) limits_return_requests(h->context->limits, &s->client, 1);
	h->memory -= s->memory;
	h->files -= s->holds_file;
	h->open--;
	uncount_one(GAUGE_STREAMS);
	free(s);
}

/* --- frames --- */

void http2_output_frame(struct http2 *h, struct http2_output *out, enum frame_type type, unsigned flags,
						uint32_t stream, const void *payload, size_t length) {
	if (http2_output_room(out) < FRAME_HEADER + length) {
		h->failed = h->draining = true;
		return;
	}
	out->at = frame_header(out->at, length, type, flags, stream);
	if (length) memcpy(out->at, payload, length);
	out->at += length;
}

void http2_output_number(struct http2 *h, struct http2_output *out, enum frame_type type, uint32_t stream,
						 uint32_t number) {
	char payload[4];
	frame_put_32(payload, number);
	http2_output_frame(h, out, type, 0, stream, payload, sizeof payload);
}

void stream_open_window(struct http2 *h, uint32_t id, int64_t *window, int64_t most, struct http2_output *out) {
	if (most - *window <= HTTP2_WINDOW_DEFAULT / 2) return;
	http2_output_number(h, out, FRAME_WINDOW_UPDATE, id, (uint32_t)(most - *window));
	*window = most;
}

/* --- answers --- */

/* What the next block has to begin with; the bytes written. */
static size_t put_table_size(struct http2 *h, char *at) {
	size_t n = h->shrink_table;
	if (n) *at = 0x20; /* dynamic table size update: 0 */
	h->shrink_table = false;
	return n;
}

static char *put(char *at, struct slice s) {
	memcpy(at, s.at, s.length);
	return at + s.length;
}

/* Whether the fields of a response are those of its representation, whose block is ready. */
static bool has_ready_block(const struct response *r) {
	return r->status == 200 && r->representation && !r->lines.length;
}

/* The block of any response, good until the next; absent: there is no randomness for it. */
static struct slice make_block(struct http2 *h, struct response *r, uint64_t *content_length) {
	char *const lines = WORKSPACE(RESPONSE_FIELDS_MAX), *const block = WORKSPACE(STREAM_BLOCK_MAX);
	char *at = put(block + hpack_status(r->status, block), h->context->server_date_block[h->secure]);
	if (has_ready_block(r)) {
		*content_length = r->representation->size;
		at = put(at, representation_block(r->representation));
	} else {
		size_t length = response_fields(r, lines, content_length);
		if (!length) return (struct slice){0};
		at += hpack_fields((struct slice){.at = lines, .length = length}, at);
	}
	return (struct slice){.at = block, .length = (size_t)(at - block)};
}

/* Writes a block as a frame, and more if it is long; there is room (block_frames()). */
static void output_block(struct http2 *h, struct http2_output *out, uint32_t id, struct slice block, bool end) {
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

/* Bytes that the frames of a block take at most. */
static size_t block_frames(size_t length) { return length + 1 + (length / (FRAME_PAYLOAD_MAX - 1) + 1) * FRAME_HEADER; }

static struct stream *open_stream(struct http2 *h, struct stream_request *q) {
	struct stream *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->id = q->id;
	s->send_window = h->initial_window;
	s->receive_window = HTTP2_WINDOW_DEFAULT;
	s->priority = q->priority;
	s->receiving = q->receiving;
	s->discards = q->discards;
	s->client = q->client;
	s->counted = q->counted;
	q->counted = false;
	s->has_length = request_has(q->request, FIELD_CONTENT_LENGTH);
	s->expected = q->request->content_length;
	s->http2 = h;
	link_stream(h, s);
	h->open++;
	count_one(GAUGE_STREAMS);
	return s;
}

/* Whether it holds a file open, or memory for content that is made while it is sent. */
static bool holds_resources(const struct response *r) {
	return r->source.owner ||
		   (r->representation && r->status != 304 && (r->representation->fd != -1 || r->representation->gzipped));
}

/* Gives the stream its response; takes representation and source over. If out is not NULL, not blocked and has room,
 * writes the header block at once: it needs no window. false: ENOMEM, and the stream has been freed. */
static bool fill_stream(struct http2 *h, struct stream *s, const struct request *q, struct response *r,
						struct http2_output *out) {
	uint64_t length = 0;
	struct slice block = make_block(h, r, &length);
	bool head_only = q->method == METHOD_HEAD,
		 ok = block.at && (s->response = response_batch_take(h->context->batches));
	bool now = ok && out && !out->blocked && !s->receiving &&
			   http2_output_room(out) >= HTTP2_FRAMES - HTTP2_BATCH + block_frames(block.length);
	bool holds_file = holds_resources(r) && !head_only;
	if (ok && !now) ok = iob_addcopy(s->response->batch, block.at, block.length) == 0;
	if (!ok || head_only) response_drop(r);
	else ok = response_content(s->response->batch, r) == 0;
	if (!ok) {
		stream_close(h, s);
		return false;
	}
	s->holds_file = holds_file;
	h->files += holds_file;
	s->block_length = now ? 0 : block.length;
	s->ended = now && !iob_bytesleft(s->response->batch);
	if (now) output_block(h, out, s->id, block, s->ended);
	s->response->responses = 1;
	s->response->sampled = (uint8_t)counters_sample();
	if (now && s->response->sampled) response_batch_time(s->response, s->ended);
	count_answer(COUNT_HTTP2, r->status);
	response_batch_note(h->context->batches, s->response, &s->client, q, r->user, r->status, head_only ? 0 : length);
	stream_drop_early(h, s);
	stream_account(h, s);
	return true;
}

/* Ends a stream whose response has been written completely. */
static void end_stream(struct http2 *h, struct stream *s, struct http2_output *out) {
	if (s->discards || s->receiving) { /* RFC 9113, section 8.1: the rest is not wanted */
		http2_output_number(h, out, FRAME_RST_STREAM, s->id, HTTP2_NO_ERROR);
		stream_note_reset(h, s->id);
	}
	stream_close(h, s);
}

static bool answer_later(struct http2 *h, struct stream_request *q, struct response *r, struct http2_output *out) {
	struct stream *s = open_stream(h, q);
	if (!s) {
		response_drop(r);
		return false;
	}
	if (!fill_stream(h, s, q->request, r, out)) return false;
	if (s->ended) end_stream(h, s, out);
	return true;
}

bool stream_log(struct http2 *h, const struct request *request, struct slice user, int status, uint64_t bytes) {
	count_answer(COUNT_HTTP2, status);
	if (!h->context->batches->log) return true;
	struct response_batch *x = response_batch_take(h->context->batches);
	if (!x) return false;
	const struct peer client = stream_client(h, request);
	response_batch_note(h->context->batches, x, &client, request, user, status, bytes);
	response_batch_log(h->context->batches, x);
	response_batch_return(h->context->batches, x);
	return true;
}

void stream_refuse_fields(struct http2 *h, uint32_t id, struct http2_output *out) {
	char block[HPACK_STATUS + 3 * RESPONSE_DATE_ROOM];
	char *end = put(block + hpack_status(431, block), h->context->server_date_block[h->secure]);
	struct slice whole = {.at = block, .length = (size_t)(end - block)};
	(void)stream_log(h, NULL, (struct slice){0}, 431, 0);
	if (http2_output_room(out) >= block_frames(whole.length)) output_block(h, out, id, whole, true);
}

/* --- waiting for a job --- */

struct peer stream_client(const struct http2 *h, const struct request *request) {
	struct peer client;
	if (h->forwarding && request && forwarded_client(h->context->trust, h->forwarding, request, &client)) return client;
	return h->peer;
}

struct connection_info stream_connection_info(const struct http2 *h, const struct peer *client) {
	return (struct connection_info){
		.peer = client, .port = h->port, .secure = h->secure, .patient = h->waiting_size < HTTP2_WAITING};
}

/* Returns whether the response has to wait until one of HTTP2_FILES has been sent. */
static bool must_wait_for_file(const struct http2 *h, const struct response *r) {
	return r->status && holds_resources(r) && h->files >= HTTP2_FILES;
}

/* Asks anew for the answer to a request that has waited. false: no memory, and the stream has been freed. */
static bool answer_again(struct http2 *h, struct stream *s) {
	struct waiting_request *waiting = s->waiting;
	struct response r;
	if (!waiting_request_answer(waiting, h->context->content, stream_connection_info(h, &s->client), &r)) return true;
	if (must_wait_for_file(h, &r)) {
		response_drop(&r);
		stream_drop_early(h, s); /* it will not be passed on */
		return true;
	}
	if (r.upstream) {
		if (stream_pass_begin(h, s, waiting->request, &r)) return true;
		stream_close(h, s);
		return false;
	}
	(void)end_waiting(s);
	/* no more comes of one that waits for a 100, or for a tunnel */
	s->discards |= s->receiving && (request_has(waiting->request, FIELD_EXPECT) || waiting->request->websocket);
	s->receiving &= !s->discards;
	bool answered = fill_stream(h, s, waiting->request, &r, NULL);
	if (answered) s->response->started_ns = waiting->started_ns;
	waiting_request_free(waiting);
	return answered;
}

/* The job is done. */
static void ready(void *stream) {
	struct stream *s = stream;
	struct http2 *h = s->http2;
	if (h->failed) stream_close(h, s); /* the connection is being closed */
	else if (answer_again(h, s)) h->functions->send(h->connection);
	else h->functions->close(h->connection);
}

bool stream_wait(struct http2 *h, struct stream_request *q, struct job *job) {
	struct stream *s = open_stream(h, q);
	if (!s) return false;
	wait_for(h, s, waiting_request_new(q->request, job, batch_pool_now_ns(h->context->batches)));
	if (!s->waiting) {
		stream_close(h, s);
		return false;
	}
	h->progress = true;
	stream_account(h, s);
	return true;
}

bool stream_keep_early(struct http2 *h, struct stream *s, struct slice content) {
	char *grown = content.length ? realloc(s->early, s->early_length + content.length) : s->early;
	if (content.length && !grown) return false;
	s->early = grown;
	if (content.length) memcpy(grown + s->early_length, content.at, content.length);
	s->early_length += content.length;
	stream_account(h, s);
	return true;
}

void stream_drop_early(struct http2 *h, struct stream *s) {
	h->room_changed |= s->early_length > 0;
	free(s->early);
	s->early = NULL;
	s->early_length = s->early_trailers = 0;
}

bool stream_pass_on(struct http2 *h, struct stream_request *q, const struct response *r) {
	struct stream *s = open_stream(h, q);
	if (!s) return false;
	if (stream_pass_begin(h, s, q->request, r)) return true;
	stream_close(h, s);
	return false;
}

/* Ends a stream whose passage is over: with its last frame, or with the answer that it could not be passed on. */
static void end_pass(struct http2 *h, struct stream *s, struct http2_output *out) {
	switch (stream_pass_next(s)) {
	case STREAM_PASS_WAITS: break;
	case STREAM_PASS_DONE:
		http2_output_frame(h, out, FRAME_DATA, FRAME_FLAG_END_STREAM, s->id, NULL, 0);
		end_stream(h, s, out);
		break;
	case STREAM_PASS_BROKEN:
		http2_output_number(h, out, FRAME_RST_STREAM, s->id, HTTP2_INTERNAL_ERROR);
		stream_note_reset(h, s->id);
		stream_close(h, s);
		break;
	case STREAM_PASS_FAILED:
		wait_for(h, s, stream_pass_end(h, s));
		s->discards |= s->receiving;
		s->receiving = false;
		h->failed |= !answer_again(h, s);
		break;
	}
}

bool stream_passes(const struct http2 *h) {
	for (const struct stream *s = h->passing ? h->first : NULL; s; s = s->next)
		if (!s->waiting && (!s->pass || stream_pass_waits_for_client(h, s))) return false;
	return h->passing;
}

bool stream_awaits_upstream(const struct http2 *h) {
	const struct stream *s = h->passing ? h->first : NULL;
	while (s && (!s->pass || s->response || stream_pass_next(s) != STREAM_PASS_WAITS)) s = s->next;
	return s;
}

/* Returns the most urgent stream that waits for a file, if there may be one more; otherwise NULL. */
static struct stream *next_waiting(const struct http2 *h) {
	struct stream *s = h->waiting_size && h->files < HTTP2_FILES ? h->first : NULL;
	while (s && (!waits_for_file(s) || s->receiving)) s = s->next;
	return s;
}

/* --- at once --- */

/* Returns whether a file in memory can be written at once: no stream is open that would come first, and there is room.
 */
static bool can_answer_at_once(const struct http2 *h, const struct stream_request *q, const struct response *r,
							   const struct slice *content, size_t room) {
	size_t overhead = 2 * FRAME_HEADER + 1 + HPACK_STATUS + h->context->server_date_block[h->secure].length;
	if (h->open || q->receiving || !has_ready_block(r)) return false;
	if (q->request->method != METHOD_HEAD && !content->at) return false;
	return content->length <= FRAME_PAYLOAD_MAX && (int64_t)content->length <= h->initial_window &&
		   (int64_t)content->length <= h->send_window &&
		   overhead + representation_block(r->representation).length + content->length <= room;
}

/* Two frame headers, blocks that are ready, and the file. */
static void answer_at_once(struct http2 *h, const struct stream_request *q, struct response *r, struct slice content,
						   struct http2_output *out) {
	char *block = out->at + FRAME_HEADER;
	char *at = block + put_table_size(h, block);
	at = put(at + hpack_status(r->status, at), h->context->server_date_block[h->secure]);
	at = put(at, representation_block(r->representation));
	unsigned flags = FRAME_FLAG_END_HEADERS | (content.length ? 0 : FRAME_FLAG_END_STREAM);
	frame_header(out->at, (size_t)(at - block), FRAME_HEADERS, flags, q->id);
	out->at = at;
	if (content.length)
		http2_output_frame(h, out, FRAME_DATA, FRAME_FLAG_END_STREAM, q->id, content.at, content.length);
	h->send_window -= (int64_t)content.length;
	h->sent += content.length;
	response_drop(r);
}

/* Counts the time of an answer that needed no stream. */
static void count_times(const struct http2 *h) {
	unsigned answers = counters_sample();
	if (!answers) return;
	int64_t ns = io_read_clock() - batch_pool_now_ns(h->context->batches);
	count_first_byte(ns, answers);
	count_duration(ns, answers);
}

bool stream_answer(struct http2 *h, struct stream_request *q, struct response *r, struct http2_output *out) {
	struct slice content = q->request->method == METHOD_HEAD ? (struct slice){0} : response_in_memory(r);
	size_t reserved = HTTP2_FRAMES - HTTP2_BATCH,
		   room = http2_output_room(out); /* for frames that have to be written */
	h->progress = true;
	if (must_wait_for_file(h, r)) {
		response_drop(r);
		return stream_wait(h, q, NULL);
	}
	if (out->blocked || room < reserved || !can_answer_at_once(h, q, r, &content, room - reserved))
		return answer_later(h, q, r, out);
	answer_at_once(h, q, r, content, out);
	count_times(h);
	return stream_log(h, q->request, r->user, r->status, content.length);
}

void stream_continue(struct http2 *h, uint32_t id, struct http2_output *out) {
	char block[1 + HPACK_STATUS];
	size_t n = put_table_size(h, block);
	n += hpack_status(100, block + n);
	http2_output_frame(h, out, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, id, block, n);
}

/* --- streams take turns --- */

static bool can_send(const struct http2 *h, const struct stream *s) {
	if (s->pass && !s->response) return stream_pass_next(s) != STREAM_PASS_WAITS;
	if ((s->receiving && !s->pass) || s->ended || s->waiting || s->postponed) return false;
	return s->block_length || (s->send_window > 0 && h->send_window > 0);
}

/* RFC 9218, section 10: the most urgent first; of those the first that came, which keeps its turn to its end unless it
 * is incremental. */
static struct stream *next_stream(const struct http2 *h) {
	struct stream *s = h->first;
	while (s && !can_send(h, s)) s = s->next;
	return s;
}

bool stream_sendable(const struct http2 *h) { return next_stream(h) || next_waiting(h); }

static size_t least(size_t a, int64_t b) { return b < (int64_t)a ? (size_t)b : a; }

bool stream_next(struct http2 *h, struct http2_piece *content, struct http2_output *out) {
	char *const block = WORKSPACE(STREAM_BLOCK_MAX);
	struct stream *s = NULL;
	if (h->room_changed) stream_pass_make_room(h, out);
	while (!h->failed && (s = next_waiting(h))) h->failed |= !answer_again(h, s);
	while (!h->failed && (s = next_stream(h)) && !s->response && http2_output_room(out) >= 4 * FRAME_HEADER)
		end_pass(h, s, out);
	if (h->failed || !s) return false;
	size_t room = http2_output_room(out);
	if (room < 4 * FRAME_HEADER + block_frames(s->block_length)) return false;
	*content = (struct http2_piece){.batch = s->response->batch, .to = block, .length = s->block_length, .stream = s};
	if (s->block_length) return true;
	content->to = out->at + FRAME_HEADER;
	content->length =
		least(least(least(FRAME_PAYLOAD_MAX, s->send_window), h->send_window), (int64_t)(room - 3 * FRAME_HEADER));
	return true;
}

/* Goes on when some of the response has been taken. Returns whether nothing follows. */
static bool is_complete(struct http2 *h, struct stream *s) {
	if (iob_bytesleft(s->response->batch)) return false;
	if (!s->pass) return true;
	stream_pass_taken(h, s);
	return stream_pass_next(s) == STREAM_PASS_DONE;
}

/* The header block that had to wait. */
static void write_block(struct http2 *h, struct stream *s, struct slice block, struct http2_output *out) {
	s->block_length = 0;
	s->ended = is_complete(h, s);
	output_block(h, out, s->id, block, s->ended);
}

static void write_data(struct http2 *h, struct stream *s, size_t length, struct http2_output *out) {
	s->ended = is_complete(h, s);
	out->at = frame_header(out->at, length, FRAME_DATA, s->ended ? FRAME_FLAG_END_STREAM : 0, s->id) + length;
	s->send_window -= (int64_t)length;
	h->send_window -= (int64_t)length;
	h->sent += length;
	if (s->priority.incremental) stream_set_priority(h, s, s->priority); /* behind the others */
}

void stream_write(struct http2 *h, const struct http2_piece *content, ssize_t length, struct http2_output *out) {
	struct stream *s = content->stream;
	h->progress = true;
	if (length == -1) { /* the file has become shorter */
		http2_output_number(h, out, FRAME_RST_STREAM, s->id, HTTP2_INTERNAL_ERROR);
		s->ended = true;
	} else if (s->block_length) {
		write_block(h, s, (struct slice){.at = content->to, .length = (size_t)length}, out);
	} else {
		write_data(h, s, (size_t)length, out);
	}
	if (s->response && s->response->sampled) response_batch_time(s->response, s->ended);
	if (s->ended) end_stream(h, s, out);
	else stream_account(h, s);
}
