/* conn_http2.c - moves bytes between a connection and its HTTP/2 session (http2/http2.h). */
#include <errno.h>

#include "gatling/base/workspace.h"
#include "gatling/conn/conn_state.h"
#include "gatling/http2/http2.h"

/* Keeps a copy of the frames in the worker's buffer that the socket has not taken. Returns false if memory runs out. */
static bool keep_frames(struct conn *c, size_t length) {
	size_t left = iob_bytesleft(c->outgoing->iob);
	iob_reset(c->outgoing->iob);
	return iob_addcopy(c->outgoing->iob, c->context->frames + length - left, left) == 0;
}

/* Appends the frames at the start of the worker's buffer to those that wait. Returns false if there are too many, or
 * memory runs out. */
static bool queue_frames(struct conn *c, size_t length) {
	return response_batch_take(&c->context->batches, BATCH_LARGE, &c->outgoing) &&
		   iob_bytesleft(c->outgoing->iob) + length <= HTTP2_UNSENT_MAX &&
		   iob_addcopy(c->outgoing->iob, c->context->frames, length) == 0;
}

_Static_assert((int)HTTP2_BATCH == (int)TLS_BATCH, "a batch of frames is one of records");

/* Writes frames of streams after the first length bytes of the worker's buffer, as far as their content is in memory.
 * Returns the bytes of all frames. */
static size_t write_frames(struct conn *c, size_t length) {
	struct conn_context *w = c->context;
	struct http2_output out = {.at = w->frames + length, .end = w->frames + length + HTTP2_BATCH};
	char *const block = WORKSPACE(STREAMS_BLOCK);
	struct http2_piece piece;
	if (out.end > w->frames + sizeof w->frames) return length;
	while (http2_next(c->http2, block, &piece, &out)) {
		ssize_t n = iob_take(w->loop, c->fd, piece.iob, piece.to, piece.length);
		if (n == -1 && errno == EAGAIN) stream_postpone(piece.stream); /* a thread reads it */
		else http2_write(c->http2, &piece, n, &out);
	}
	if (http2_ended(c->http2)) c->ending = CONN_ENDING_LINGER;
	return (size_t)(out.at - w->frames);
}

/* Sends the frames that wait, then those at the start of the worker's buffer, then further ones as long as the socket
 * takes them. Returns IOB_AGAIN if there is more to send. */
static enum iob_result send_frames(struct conn *c, size_t length, uint64_t most) {
	struct conn_context *w = c->context;
	const struct streams *streams = http2_streams(c->http2);
	const bool blocked = c->tls && tls_blocked(c->tls); /* TLS has something to send by itself */
	uint64_t sent = 0;
	if (length && (c->outgoing || blocked)) { /* they wait, too */
		if (!queue_frames(c, length)) return IOB_FAILED;
		length = 0;
	}
	enum iob_result result = !c->outgoing && blocked ? tls_flush(c->tls) : IOB_DONE;
	while (result == IOB_DONE) {
		if (!c->outgoing) {
			const bool sendable = sent && streams_sendable(streams);
			if (sendable && sent + HTTP2_BATCH > most) {
				result = IOB_AGAIN;
				break;
			}
			if (sent && !sendable && !streams->room_changed) break; /* all has been sent */
			length = write_frames(c, length);
			if (!length) break;
			if (!response_batch_take(&c->context->batches, BATCH_LARGE, &c->outgoing) ||
				iob_addbuf(c->outgoing->iob, w->frames, length, NULL, NULL) == -1)
				return IOB_FAILED;
		}
		result = conn_transmit(c, c->outgoing->iob, UINT64_MAX, c->ending ? IO_MORE : IO_LAST, &sent);
		if (result == IOB_AGAIN && length && !keep_frames(c, length)) return IOB_FAILED;
		length = 0;
		if (result != IOB_DONE) break;
		response_batch_return(&c->context->batches, &c->outgoing);
	}
	w->sent += sent;
	return result;
}

/* Handles the frames that have come. Writes those that answer them to the start of the worker's buffer, and returns
 * their bytes. */
static size_t handle_frames(struct conn *c, struct conn_run *run) {
	struct conn_context *w = c->context;
	struct http2_output out = {.at = w->frames, .end = w->frames + sizeof w->frames, .blocked = c->outgoing};
	size_t used = http2_receive(c->http2, run->input.at, run->input.length, &out);
	run->input = slice_rest(run->input, used);
	if (c->tls && tls_ended(c->tls)) c->input_ended = true;
	if (c->input_ended) http2_input_ended(c->http2);
	if (w->draining) http2_announce_end(c->http2, &out);
	if (run->drained) http2_drain(c->http2, &out);
	if (http2_ended(c->http2)) c->ending = CONN_ENDING_LINGER;
	return (size_t)(out.at - w->frames);
}

/* Returns whether nothing more can ever be sent, after everything that could be sent has been: the windows are closed,
 * and the client, which has ended its side, cannot open them. */
static bool is_stuck(const struct conn *c, const struct streams *streams) {
	if (!c->input_ended || io_reading(c->context->loop, c->fd)) return false;
	return streams_wait(streams).what != WAIT_JOB && !streams_await_upstream(streams);
}

enum conn_state conn_http2_run(struct conn *c, struct conn_run *run) {
	struct conn_context *w = c->context;
	struct streams *streams = http2_streams(c->http2);
	const struct waiting before = http2_waits(c->http2);
	uint64_t sent = w->sent;
	if (streams->postpones && !io_reading(w->loop, c->fd)) streams_go_on(streams);
	size_t length = handle_frames(c, run);
	enum iob_result result = send_frames(c, length, run->resumed ? w->share : CONN_SHARE_MOST);
	if (result == IOB_FAILED) return CONN_CLOSED;
	if (result == IOB_DONE && !run->resumed) w->at_once_ms = w->site.now_ms;
	if (result == IOB_DONE && (c->ending || is_stuck(c, streams))) return conn_end(c, true);
	const bool progress = streams_take_progress(streams) || (run->resumed && w->sent > sent);
	const struct waiting wait = http2_waits(c->http2);
	const bool another = wait.what != before.what || (wait.what == WAIT_HEAD && wait.since_ns != before.since_ns);
	run->progress |= another || (progress && wait.what != WAIT_DRAIN);
	c->frames_wait = result == IOB_AGAIN || io_reading(w->loop, c->fd);
	io_write_meanwhile(w->loop, c->fd, result == IOB_AGAIN);
	return CONN_HTTP2;
}

void conn_http2_send_goaway(struct conn *c, bool calm) {
	struct http2_output out = {.at = c->context->frames, .end = c->context->frames + sizeof c->context->frames};
	if (!c->ending) (calm ? http2_calm : http2_drain)(c->http2, &out); /* otherwise a GOAWAY has been sent */
	c->ending = CONN_ENDING_LINGER;
	(void)send_frames(c, (size_t)(out.at - c->context->frames), CONN_SHARE_MOST);
}
