/* stream_send.c - see http2.h: chooses the stream that sends next, and frames header blocks and content. */
#include "gatling/http2/http2.h"
#include "gatling/http2/stream.h"

/* Returns whether the stream waits for one of HTTP2_FILES. One that has given up its job does, too, since its answer
 * may be a file. */
static bool waits_for_file(const struct stream *s) { return stream_waits(s) && !stream_waits_for_job(s); }

/* Returns the most urgent stream that waits for a file, or NULL; also NULL if no more files may be open. */
static struct stream *next_waiting(const struct http2 *h) {
	struct stream *s = h->waiting_size && h->files < HTTP2_FILES ? h->first : NULL;
	while (s && (!waits_for_file(s) || s->receiving)) s = s->next;
	return s;
}

/* Ends a stream whose proxied request has ended: sends its last frame, resets it, or answers that it could not be
 * passed on. */
static void end_relay(struct http2 *h, struct stream *s, struct http2_output *out) {
	switch (s->relayed) {
	case RELAY_WAITS: break;
	case RELAY_DONE:
		http2_output_frame(h, out, FRAME_DATA, FRAME_FLAG_END_STREAM, s->id, NULL, 0);
		stream_end(h, s, out);
		break;
	case RELAY_BROKEN:
		http2_output_number(h, out, FRAME_RST_STREAM, s->id, HTTP2_INTERNAL_ERROR);
		stream_note_reset(h, s->id);
		stream_close(h, s);
		break;
	case RELAY_FAILED:
		s->discards |= s->receiving;
		s->receiving = false;
		h->failed |= !stream_answer_again(h, s);
		break;
	}
}

/* Returns since when a request has waited longest for a job, or 0 if none waits. */
static int64_t waiting_since(const struct http2 *h) {
	int64_t since = 0;
	for (const struct stream *s = h->waiting_size ? h->first : NULL; s; s = s->next)
		if (stream_waits_for_job(s) && (!since || s->exchange->waits_since_ns < since))
			since = s->exchange->waits_since_ns;
	return since;
}

static bool waits_only_for_upstreams(const struct http2 *h) {
	for (const struct stream *s = h->passes ? h->first : NULL; s; s = s->next)
		if (!stream_waits(s) && (!s->exchange || stream_relay_waits_for_client(h, s))) return false;
	return h->passes;
}

struct waiting http2_waits(const struct http2 *h) {
	if (h->block_stream || !h->open) return (struct waiting){.what = h->block_stream ? WAIT_HEAD : WAIT_REQUEST};
	const int64_t since_ns = waiting_since(h);
	if (since_ns) return (struct waiting){.what = WAIT_JOB, .since_ns = since_ns};
	if (!waits_only_for_upstreams(h)) return (struct waiting){.what = WAIT_CLIENT_SENDS};
	return (struct waiting){.what = h->tunnels ? WAIT_TUNNEL : WAIT_UPSTREAM};
}

bool http2_awaits_upstream(const struct http2 *h) {
	const struct stream *s = h->passes ? h->first : NULL;
	while (s && (!stream_is_passed_on(s) || s->batch || s->relayed != RELAY_WAITS)) s = s->next;
	return s;
}

static bool can_send(const struct http2 *h, const struct stream *s) {
	const bool passed = stream_is_passed_on(s);
	if (passed && !s->batch) return s->relayed != RELAY_WAITS;
	if ((s->receiving && !passed) || s->ended || stream_waits(s) || s->postponed) return false;
	return s->block_length || (s->send_window > 0 && h->send_window > 0);
}

/* Returns the stream that sends next, or NULL (RFC 9218, section 10): of the most urgent ones, the one that came first.
 * It keeps its turn to the end, unless it is incremental. */
static struct stream *next_stream(const struct http2 *h) {
	struct stream *s = h->first;
	while (s && !can_send(h, s)) s = s->next;
	return s;
}

bool http2_sendable(const struct http2 *h) { return !h->failed && (next_stream(h) || next_waiting(h)); }

static size_t least(size_t a, int64_t b) { return b < (int64_t)a ? (size_t)b : a; }

bool http2_next(struct http2 *h, char *block, struct http2_piece *piece, struct http2_output *out) {
	struct stream *s = NULL;
	if (h->room_changed) stream_relay_make_room(h, out);
	while (!h->failed && (s = next_waiting(h))) h->failed |= !stream_answer_again(h, s);
	while (!h->failed && (s = next_stream(h)) && !s->batch && http2_output_room(out) >= 4 * FRAME_HEADER)
		end_relay(h, s, out);
	if (h->failed || !s || !s->batch) return false;
	size_t room = http2_output_room(out);
	if (room < 4 * FRAME_HEADER + stream_block_frames(s->block_length)) return false;
	*piece = (struct http2_piece){.iob = s->batch->iob, .to = block, .length = s->block_length, .stream = s};
	if (s->block_length) return true;
	piece->to = out->at + FRAME_HEADER;
	piece->length =
		least(least(least(FRAME_PAYLOAD_MAX, s->send_window), h->send_window), (int64_t)(room - 3 * FRAME_HEADER));
	return true;
}

/* Continues a proxied request if all of the batch has been taken. Returns whether the response is complete. */
static bool is_complete(struct http2 *h, struct stream *s) {
	if (iob_bytesleft(s->batch->iob)) return false;
	if (!stream_is_passed_on(s)) return true;
	stream_relay_taken(h, s);
	return s->relayed == RELAY_DONE;
}

/* Writes the header block that had to wait. */
static void write_block(struct http2 *h, struct stream *s, struct slice block, struct http2_output *out) {
	s->block_length = 0;
	s->ended = is_complete(h, s);
	stream_output_block(h, out, s->id, block, s->ended);
}

static void write_data(struct http2 *h, struct stream *s, size_t length, struct http2_output *out) {
	s->ended = is_complete(h, s);
	out->at = frame_header(out->at, length, FRAME_DATA, s->ended ? FRAME_FLAG_END_STREAM : 0, s->id) + length;
	s->send_window -= (int64_t)length;
	h->send_window -= (int64_t)length;
	h->sent += length;
	if (s->priority.incremental) stream_set_priority(h, s, s->priority); /* moves it behind the others */
}

void http2_write(struct http2 *h, const struct http2_piece *piece, ssize_t length, struct http2_output *out) {
	struct stream *s = piece->stream;
	h->progress = true;
	if (length == -1) { /* the file has become shorter */
		http2_output_number(h, out, FRAME_RST_STREAM, s->id, HTTP2_INTERNAL_ERROR);
		s->ended = true;
	} else if (s->block_length) {
		write_block(h, s, (struct slice){.at = piece->to, .length = (size_t)length}, out);
	} else {
		write_data(h, s, (size_t)length, out);
	}
	if (s->batch && s->batch->sampled) response_batch_time(s->batch, s->ended);
	if (s->ended) stream_end(h, s, out);
	else stream_account(h, s);
}

void http2_postpone(struct http2 *h, const struct http2_piece *piece) {
	piece->stream->postponed = h->postpones = true;
}

void http2_go_on(struct http2 *h) {
	for (struct stream *s = h->postpones ? h->first : NULL; s; s = s->next) s->postponed = false;
	h->postpones = false;
}
