/* conn/http2.c - moves bytes between a connection and its HTTP/2 session (http2/http2.h). */
#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/conn_state.h"
#include "gatling/http2/http2.h"

/* Keeps what the socket has not taken of frames in the worker's buffer. */
static bool keep_frames(struct conn_context *w, struct conn *c, size_t length) {
	size_t left = iob_bytesleft(c->responses->batch);
	iob_reset(c->responses->batch);
	return iob_addcopy(c->responses->batch, w->frames + length - left, left) == 0;
}

/* Sends the frames at the start of the worker's buffer, behind those that wait, then further ones while there are some
 * and the socket takes them. IOB_AGAIN: there is more to be sent. */
static enum iob_result send_frames(struct conn_context *w, struct conn *c, size_t length) {
	uint64_t sent = 0, most = conn_share(w, c);
	if (length && (c->responses || conn_blocked(c))) { /* they wait, too */
		if (!c->responses && !(c->responses = response_batch_take(&w->batches))) return IOB_FAILED;
		if (iob_bytesleft(c->responses->batch) + length > HTTP2_UNSENT_MAX ||
			iob_addcopy(c->responses->batch, w->frames, length) == -1)
			return IOB_FAILED;
		length = 0;
	}
	enum iob_result result = !c->responses && conn_blocked(c) ? tls_flush(c->tls) : IOB_DONE;
	while (result == IOB_DONE) {
		if (!c->responses) {
			struct http2_output out = {.at = w->frames + length, .end = w->frames + sizeof w->frames};
			if (sent >= most && http2_sendable(c->http2)) {
				result = IOB_AGAIN;
				break;
			}
			http2_produce(c->http2, &out);
			length = (size_t)(out.at - w->frames);
			c->closing |= http2_ended(c->http2);
			if (!length) break;
			if (!(c->responses = response_batch_take(&w->batches))) return IOB_FAILED;
			if (iob_addbuf(c->responses->batch, w->frames, length, NULL, NULL) == -1) return IOB_FAILED;
		}
		c->closing |= http2_ended(c->http2);
		result = conn_transmit(w, c, c->responses->batch, UINT64_MAX, conn_rest(c), &sent);
		if (result == IOB_AGAIN && length && !keep_frames(w, c, length)) return IOB_FAILED;
		length = 0;
		if (result != IOB_DONE) break;
		response_batch_return(&w->batches, c->responses);
		c->responses = NULL;
	}
	w->sent += sent;
	return result;
}

/* Waits for the client, and for the socket if there is more to be sent. */
static void await_frames(struct conn_context *w, struct conn *c, enum iob_result result) {
	bool output = c->state == CONN_WRITE;
	if (c->ended || (output && c->closing)) io_dontwantread(w->loop, c->fd);
	else if (io_wantread(w->loop, c->fd) == -1) result = IOB_FAILED;
	if (!output) io_dontwantwrite(w->loop, c->fd);
	else if (io_wantwrite(w->loop, c->fd) == -1) result = IOB_FAILED;
	if (result == IOB_FAILED) conn_close(w, c);
	else conn_update_memory(w, c);
}

/* After frames have come, or room for more: sends what there is and waits for what comes next. */
static void send_and_wait(struct conn_context *w, struct conn *c, size_t length) {
	bool blocked = c->state == CONN_WRITE;
	uint64_t sent = w->sent;
	if (c->tls && tls_ended(c->tls) && !c->ended) {
		c->ended = true;
		http2_input_ended(c->http2);
	}
	enum iob_result result = send_frames(w, c, length);
	if (result == IOB_DONE && !blocked) w->at_once_ms = io_now(w->loop);
	if (result == IOB_FAILED) {
		conn_close(w, c);
		return;
	}
	if (result == IOB_DONE && c->closing) {
		c->linger = true;
		conn_end(w, c);
		return;
	}
	bool progress = http2_progress(c->http2) || (blocked && w->sent > sent);
	c->state = result == IOB_AGAIN || io_reading(w->loop, c->fd) ? CONN_WRITE : CONN_READ;
	if (progress && !http2_end_announced(c->http2)) {
		conn_set_timeout(w, c);
		c->unread = INT32_MAX; /* to ask takes a system call: the first deadline passes, see conn_timed_out() */
	}
	await_frames(w, c, result);
}

void conn_http2_run(struct conn_context *w, struct conn *c, const char *data, size_t length) {
	struct http2_output out = {.at = w->frames, .end = w->frames + sizeof w->frames};
	bool in_block = http2_in_block(c->http2), fresh = c->awaited != CONN_AWAIT_REQUEST;
	bool announced = http2_end_announced(c->http2);
	size_t used = http2_receive(c->http2, data, length, c->responses != NULL, &out);
	if (w->draining) http2_announce_end(c->http2, &out);
	c->awaited = CONN_AWAIT_REQUEST;
	if (fresh || (!in_block && http2_in_block(c->http2)) || announced != http2_end_announced(c->http2))
		conn_set_timeout(w, c);
	if (!conn_keep_input(c, data + used, length - used)) {
		conn_close(w, c);
		return;
	}
	send_and_wait(w, c, (size_t)(out.at - w->frames));
}

void conn_http2_writable(struct conn_context *w, struct conn *c) { send_and_wait(w, c, 0); }

void conn_http2_input_ended(struct conn_context *w, struct conn *c) {
	c->ended = true;
	http2_input_ended(c->http2);
	send_and_wait(w, c, 0);
}

/* Writes a frame that announces or makes the end, and sends it. */
static void send_notice(struct conn_context *w, struct conn *c, void (*write)(struct http2 *, struct http2_output *)) {
	struct http2_output out = {.at = w->frames, .end = w->frames + sizeof w->frames};
	write(c->http2, &out);
	conn_set_timeout(w, c);
	send_and_wait(w, c, (size_t)(out.at - w->frames));
}

void conn_http2_drain(struct conn_context *w, struct conn *c) { send_notice(w, c, http2_announce_end); }
void conn_http2_finish(struct conn_context *w, struct conn *c) { send_notice(w, c, http2_drain); }

void conn_http2_send_goaway(struct conn_context *w, struct conn *c, bool calm) {
	struct http2_output out = {.at = w->frames, .end = w->frames + sizeof w->frames};
	if (!c->closing) (calm ? http2_calm : http2_drain)(c->http2, &out); /* otherwise a GOAWAY has been sent */
	c->closing = true;
	(void)send_frames(w, c, (size_t)(out.at - w->frames));
}

static void send_more(void *connection) {
	struct conn *c = connection;
	conn_http2_writable(c->context, c);
}

static void close_connection(void *connection) {
	struct conn *c = connection;
	conn_close(c->context, c);
}

const struct http2_connection http2_connection = {.send = send_more, .close = close_connection};
