/* http2.c - see http2.h. */
#include "bench/httpbench/load/http2.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRAME_MAX = 32 * 1024 /* more than nghttp2 makes of one frame: 16 KiB of payload, and what it adds */
};

struct session {
	struct connections *all;
	struct connection *conn;
	nghttp2_session *http2;
	char *left; /* bytes that the kernel has not accepted yet; NULL: none */
	size_t left_at, left_length;
};

/* --- receiving --- */

static struct connection_request *request_of(nghttp2_session *session, int32_t stream) {
	return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
					 const uint8_t *value, size_t value_length, uint8_t flags, void *context) {
	static const char status[] = ":status";
	const struct session *h = context;
	(void)flags;
	if (name_length != sizeof status - 1 || memcmp(name, status, name_length) != 0 || value_length != 3) return 0;
	struct connection_request *p = request_of(session, frame->hd.stream_id);
	if (!p || *value == '1') return 0; /* an interim response does not count */
	p->response.status = (uint16_t)((value[0] - '0') * 100 + (value[1] - '0') * 10 + value[2] - '0');
	p->first_ns = h->all->now_ns;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t length,
				   void *context) {
	const struct session *h = context;
	struct connection_request *p = request_of(session, stream);
	(void)flags;
	if (p) response_compare(&p->response, (const char *)data, length, &h->all->plan->expected);
	return 0;
}

/* Notes that the server takes no more streams, that it has ended a response, and how many streams it allows. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context) {
	const struct session *h = context;
	if (frame->hd.type == NGHTTP2_GOAWAY) h->conn->retired = true;
	if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
		frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		struct connection_request *p = request_of(session, frame->hd.stream_id);
		if (p) p->ended = true;
	}
	if (frame->hd.type != NGHTTP2_SETTINGS || frame->hd.flags & NGHTTP2_FLAG_ACK) return 0;
	const uint32_t most = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	h->conn->room = (uint16_t)(most < h->all->plan->depth ? most : h->all->plan->depth);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *context) {
	const struct session *h = context;
	struct connection_request *p = request_of(session, stream);
	if (!p) return 0;
	if (error == NGHTTP2_REFUSED_STREAM) connection_give_back(h->all, h->conn, p);
	else if (error == NGHTTP2_PROTOCOL_ERROR) connection_failed(h->all, h->conn, p, FAILURE_PROTOCOL);
	else if (error != NGHTTP2_NO_ERROR) connection_failed(h->all, h->conn, p, FAILURE_RESET);
	/* after its response the server may refuse the rest of the content (RFC 9113, section 8.1) */
	else if (!p->ended) connection_failed(h->all, h->conn, p, FAILURE_SHORT);
	else connection_answered(h->all, h->conn, p);
	return 0;
}

static bool take(struct connections *c, struct connection *conn, const char *data, size_t length) {
	nghttp2_session *session = ((struct session *)conn->session)->http2;
	const ssize_t n = nghttp2_session_mem_recv(session, (const uint8_t *)data, length);
	if (n >= 0 && conn->retired && !conn->assigned) {
		connection_close(c, conn);
		return false;
	}
	if (n >= 0) return true;
	connection_fail(c, conn, FAILURE_PROTOCOL);
	return false;
}

/* --- sending --- */

static ssize_t read_content(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t length, uint32_t *flags,
							nghttp2_data_source *source, void *context) {
	const struct target_bytes *content = source->ptr;
	struct connection_request *p = request_of(session, stream);
	if (!p) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	const size_t left = content->length - p->partly, n = length < left ? length : left;
	(void)context;
	memcpy(buffer, content->at + p->partly, n);
	p->partly += (uint32_t)n;
	if (n == left) *flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* Submits a request to the session. Returns 0, or -1 if it takes no more. */
static int submit(const struct connections *c, const struct session *h, struct connection_request *p) {
	const struct target *t = &c->plan->target[p->target];
	const struct target_bytes *content = &c->plan->content;
	const nghttp2_data_provider provider = {.source.ptr = (void *)content, .read_callback = read_content};
	nghttp2_nv field[TARGET_FIELDS_MAX];
	for (unsigned i = 0; i < t->fields; i++)
		field[i] = (nghttp2_nv){.name = (uint8_t *)t->field[i].name.at,
								.namelen = t->field[i].name.length,
								.value = (uint8_t *)t->field[i].value.at,
								.valuelen = t->field[i].value.length,
								.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
	const nghttp2_data_provider *body = content->length ? &provider : NULL;
	p->stream = nghttp2_submit_request(h->http2, NULL, field, t->fields, body, p);
	return p->stream < 0 ? -1 : 0;
}

static bool cancel(struct connection *conn, const struct connection_request *p) {
	const struct session *h = conn->session;
	return nghttp2_session_set_stream_user_data(h->http2, p->stream, NULL) == 0 &&
		   nghttp2_submit_rst_stream(h->http2, NGHTTP2_FLAG_NONE, p->stream, NGHTTP2_CANCEL) == 0;
}

/* Hands bytes to the kernel, and keeps those that it does not accept. Returns 0, or -1 with errno. */
static int hand_over(struct connections *c, struct connection *conn, const char *at, size_t length) {
	struct session *h = conn->session;
	const ssize_t n = connection_trywritev(c, conn, &(struct iovec){.iov_base = (char *)at, .iov_len = length}, 1);
	if (n == (ssize_t)length) return 0;
	if (n == -1 && errno != EAGAIN) return -1;
	const size_t taken = n == -1 ? 0 : (size_t)n;
	h->left_length = length - taken;
	h->left_at = 0;
	h->left = malloc(h->left_length);
	if (!h->left) abort();
	memcpy(h->left, at + taken, h->left_length);
	errno = EAGAIN;
	return -1;
}

/* Hands over the bytes that were kept. Returns 0, or -1 with errno; EAGAIN: some are still left. */
static int hand_over_left(struct connections *c, struct connection *conn) {
	struct session *h = conn->session;
	while (h->left) {
		const struct iovec part = {.iov_base = h->left + h->left_at, .iov_len = h->left_length - h->left_at};
		const ssize_t n = connection_trywritev(c, conn, &part, 1);
		if (n == -1) return -1;
		h->left_at += (size_t)n;
		if (h->left_at < h->left_length) continue;
		free(h->left);
		h->left = NULL;
	}
	return 0;
}

/* Returns whether nghttp2 has ended the session, with GOAWAY, because the server broke the protocol. */
static bool is_over(const struct session *h) {
	return !nghttp2_session_want_read(h->http2) && !nghttp2_session_want_write(h->http2);
}

/* Writes frames to c->output. Returns how many bytes, or -1 without memory. */
static ssize_t make_frames(const struct connections *c, const struct session *h) {
	size_t length = 0;
	while (length < CONNECTION_READ_MAX - FRAME_MAX) {
		const uint8_t *at;
		const ssize_t n = nghttp2_session_mem_send(h->http2, &at);
		if (n < 0) return -1;
		if (n == 0) break;
		memcpy(c->output + length, at, (size_t)n);
		length += (size_t)n;
	}
	return (ssize_t)length;
}

static int send_requests(struct connections *c, struct connection *conn) {
	struct session *h = conn->session;
	if (hand_over_left(c, conn) == -1) return -1;
	for (struct connection_request *p; (p = connection_at(c, conn, conn->unsent));) {
		if (submit(c, h, p) == -1) { /* there is no stream number left */
			conn->retired = true;
			connection_give_back(c, conn, p);
			continue;
		}
		connection_sent(c, conn, p);
	}
	for (;;) {
		const ssize_t length = make_frames(c, h);
		errno = length == -1 ? ENOMEM : EBADMSG;
		if (length <= 0) return length == 0 && !is_over(h) ? 0 : -1;
		if (hand_over(c, conn, c->output, (size_t)length) == -1) return -1;
	}
}

static bool wants_to_send(const struct connection *conn) {
	const struct session *h = conn->session;
	return !h->left && nghttp2_session_want_write(h->http2);
}

/* --- beginning and end --- */

static void end_of_input(struct connections *c, struct connection *conn) { connection_fail(c, conn, FAILURE_SHORT); }

static nghttp2_session_callbacks *make_callbacks(void) {
	nghttp2_session_callbacks *callbacks;
	if (nghttp2_session_callbacks_new(&callbacks) != 0) return NULL;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	return callbacks;
}

/* Submits the settings, with larger windows than the initial 65,535 bytes. */
static bool begin(const struct plan *plan, nghttp2_session *session) {
	const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
											   {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, plan->window}};
	return nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) == 0 &&
		   nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, (int32_t)plan->window_all) == 0;
}

static void session_free(void *session) {
	struct session *h = session;
	nghttp2_session_del(h->http2);
	free(h->left);
	free(h);
}

static void *session_new(struct connections *c, struct connection *conn) {
	struct session *h = calloc(1, sizeof *h);
	nghttp2_session_callbacks *callbacks = make_callbacks();
	bool made = false;
	if (h) *h = (struct session){.all = c, .conn = conn};
	if (h && callbacks && nghttp2_session_client_new(&h->http2, callbacks, h) == 0) made = begin(c->plan, h->http2);
	nghttp2_session_callbacks_del(callbacks);
	if (h && !made) session_free(h);
	return made ? h : NULL;
}

const struct connection_protocol http2 = {.session_new = session_new,
										  .session_free = session_free,
										  .send = send_requests,
										  .wants_to_send = wants_to_send,
										  .take = take,
										  .end_of_input = end_of_input,
										  .cancel = cancel};
