/* http2_send.c - see http2.h: frames header blocks and content of the streams, in their turns. */
#include "gatling/http2/http2.h"
#include "gatling/http2/session.h"

/* Ends a stream whose proxied request has ended: sends its last frame, resets it (a tunnel as RFC 8441, section 5,
 * says), or answers that it could not be passed on. */
static void end_relay(struct http2 *h, struct stream *s, struct http2_output *out) {
	const uint32_t id = (uint32_t)s->id;
	switch (s->relayed) {
	case RELAY_WAITS: break;
	case RELAY_DONE:
		http2_output_frame(h, out, FRAME_DATA, FRAME_FLAG_END_STREAM, id, NULL, 0);
		http2_end_stream(h, s, out);
		break;
	case RELAY_BROKEN:
		http2_output_number(h, out, FRAME_RST_STREAM, id, s->exchange->tunnel ? HTTP2_CANCEL : HTTP2_INTERNAL_ERROR);
		http2_note_reset(h, id);
		stream_close(s);
		break;
	case RELAY_FAILED: stream_relay_failed(s); break;
	}
}

struct waiting http2_waits(const struct http2 *h) {
	if (h->announced && !h->draining) return (struct waiting){.what = WAIT_DRAIN};
	if (h->block_stream) return (struct waiting){.what = WAIT_HEAD, .since_ns = h->block_since_ns};
	return streams_wait(&h->streams);
}

static size_t least(size_t a, int64_t b) { return b < (int64_t)a ? (size_t)b : a; }

bool http2_next(struct http2 *h, char *block, struct http2_piece *piece, struct http2_output *out) {
	struct streams *t = &h->streams;
	struct stream *s = NULL;
	http2_make_room(h, out);
	streams_answer_waiting(t);
	while (!t->failed && (s = streams_next(t)) && !s->batch && http2_output_room(out) >= 4 * FRAME_HEADER)
		end_relay(h, s, out);
	if (t->failed || !s || !s->batch) return false;
	size_t room = http2_output_room(out);
	if (room < 4 * FRAME_HEADER + http2_block_frames(s->block_length)) return false;
	*piece = (struct http2_piece){.iob = s->batch->iob, .to = block, .length = s->block_length, .stream = s};
	if (s->block_length) return true;
	piece->to = out->at + FRAME_HEADER;
	piece->length =
		least(least(least(FRAME_PAYLOAD_MAX, s->send_window), h->send_window), (int64_t)(room - 3 * FRAME_HEADER));
	return true;
}

static void write_data(struct http2 *h, struct stream *s, size_t length, struct http2_output *out) {
	const unsigned flags = s->ended ? FRAME_FLAG_END_STREAM : 0;
	out->at = frame_header(out->at, length, FRAME_DATA, flags, (uint32_t)s->id) + length;
	s->send_window -= (int64_t)length;
	h->send_window -= (int64_t)length;
	h->sent += length;
}

void http2_write(struct http2 *h, const struct http2_piece *piece, ssize_t length, struct http2_output *out) {
	struct stream *s = piece->stream;
	const bool block = s->block_length;
	const uint32_t id = (uint32_t)s->id;
	h->streams.progress = true;
	if (length == -1) { /* the file has become shorter */
		http2_output_number(h, out, FRAME_RST_STREAM, id, HTTP2_INTERNAL_ERROR);
		s->ended = true;
	} else {
		stream_sent(s);
		if (block) http2_output_block(h, out, id, (struct slice){.at = piece->to, .length = (size_t)length}, s->ended);
		else write_data(h, s, (size_t)length, out);
	}
	if (s->batch && s->batch->sampled) response_batch_time(s->batch, s->ended);
	if (s->ended) http2_end_stream(h, s, out);
	else stream_account(s);
}
