/* transport.c - see conn_state.h: reads and writes the bytes of a connection, through TLS if it uses it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "gatling/conn/conn_state.h"

_Static_assert((int)CONN_SCRATCH >= (int)TLS_ROOM + (int)HEAD_MAX, "what is kept leaves room for tls_read()");

ssize_t conn_receive(struct conn *c, char *buffer, size_t length) {
	return c->tls ? tls_read(c->tls, buffer, length) : io_tryread(c->context->loop, c->fd, buffer, length);
}

void conn_limit_unsent(struct conn *c) {
	const struct conn_context *w = c->context;
	if (c->unsent_halved == w->unsent_halved || c->unsent_halved == w->unsent_halved + 1) return;
	c->unsent_halved = w->unsent_halved & CONN_UNSENT_UNKNOWN;
	platform_limit_unsent(c->fd, conn_unsent(w));
}

enum iob_result conn_transmit(struct conn *c, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent) {
	if (iob_bytesleft(batch) > CONN_UNSENT_MIN) conn_limit_unsent(c);
	return c->tls ? tls_send(c->tls, batch, most, rest, sent)
				  : iob_send(c->context->loop, c->fd, batch, most, rest, sent);
}

bool conn_keep_input(struct conn *c, struct slice input) {
	if (!(c->input = malloc(sizeof *c->input + input.length))) return false;
	c->input->length = input.length;
	memcpy(c->input->bytes, input.at, input.length);
	return true;
}

struct slice conn_fetch_input(struct conn *c) {
	struct slice input = {.at = c->context->scratch, .length = c->input ? c->input->length : 0};
	if (c->input) memcpy(c->context->scratch, c->input->bytes, input.length);
	free(c->input);
	c->input = NULL;
	return input;
}

bool conn_read(struct conn *c, struct slice *input) {
	struct conn_context *w = c->context;
	*input = c->input ? conn_fetch_input(c) : (struct slice){.at = w->scratch};
	char *at = w->scratch + input->length;
	size_t room = CONN_SCRATCH - input->length;
	const bool takes_turns = !c->tls && c->state != CONN_LINGER && c->state != CONN_PASS; /* content costs little */
	if (room > w->read_most && takes_turns) room = w->read_most;
	ssize_t n = c->state == CONN_LINGER ? io_tryread(w->loop, c->fd, at, room) : conn_receive(c, at, room);
	c->input_ended |= n == 0;
	if (n == 0 && c->http2 && c->state != CONN_LINGER) {
		input->length = 0; /* the part of a frame that was kept is dropped */
		return true;
	}
	if (n == 0 || (n == -1 && errno != EAGAIN)) return false;
	if (n > 0) input->length += (size_t)n;
	return true;
}

bool conn_read_proxy_header(struct conn *c, struct proxy_header *h, struct slice *input, int *used) {
	struct conn_context *w = c->context;
	ssize_t n = 1;
	if (!c->secure) {
		if (!conn_read(c, input)) return false;
		*used = proxy_header_parse(h, input->at, input->length);
		return true;
	}
	*input = conn_fetch_input(c);
	while (n > 0 && (*used = proxy_header_parse(h, input->at, input->length)) == 0) {
		size_t lacking = proxy_header_lacks(input->at, input->length);
		n = io_tryread(w->loop, c->fd, w->scratch + input->length, lacking);
		if (n > 0) input->length += (size_t)n;
	}
	return n > 0 || (n == -1 && errno == EAGAIN);
}

bool conn_other_end(const struct conn *c, struct peer *peer) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	const struct conn_context *w = c->context;
	if ((unsigned)c->fd < w->proxies && !peer_is_unix(&w->proxy[c->fd])) {
		*peer = w->proxy[c->fd];
		return true;
	}
	if (getpeername(c->fd, (struct sockaddr *)&address, &length) == -1) return false;
	*peer = peer_of((const struct sockaddr *)&address);
	return true;
}

bool conn_remember_end(struct conn *c) {
	struct conn_context *w = c->context;
	const unsigned fd = (unsigned)c->fd;
	if (fd >= w->proxies) {
		struct peer *proxy = realloc(w->proxy, 2 * (fd + 1) * sizeof *proxy);
		if (!proxy) return false;
		memset(proxy + w->proxies, 0, (2 * (fd + 1) - w->proxies) * sizeof *proxy);
		w->proxy = proxy;
		w->proxies = 2 * (fd + 1);
	}
	w->proxy[fd] = c->peer;
	return true;
}

void conn_forget_end(const struct conn *c) {
	if ((unsigned)c->fd < c->context->proxies) c->context->proxy[c->fd] = peer_unknown;
}

bool conn_is_reset(const struct conn *c) {
	struct pollfd p = {.fd = c->fd};
	return poll(&p, 1, 0) > 0;
}

/* Calls shutdown(2) even without lingering: after close(2) alone, input that was not read would reset the connection,
 * and the response that waits for the FIN would be lost. */
enum conn_state conn_end(struct conn *c, bool linger) {
	if (c->tls) tls_close(c->tls);
	if (shutdown(c->fd, SHUT_WR) == -1 || !linger) return CONN_CLOSED;
	c->linger.bytes = c->linger.stalled_ms = 0;
	return CONN_LINGER;
}
