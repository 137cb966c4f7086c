/* proxied_request.c - see proxied_state.h: writes the request to the upstream, and chooses the connection. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/upstream/proxied_state.h"

enum { COPIED_MAX = 4 * 1024 }; /* bytes; shorter pieces of content are copied, to be sent with what follows */

void proxied_complain(void *proxied, struct slice line) {
	const struct proxied *p = proxied;
	upstreams_report(p->link, line);
}

/* Keeps the address of the link, which is about to go. */
static void note_address(struct proxied *p) { memcpy(p->to, upstreams_address(p->link), sizeof p->to); }

void proxied_fail(struct proxied *p, int status) {
	if (p->link && p->records) fcgi_finish(p->records, proxied_complain, p);
	if (p->link) {
		note_address(p);
		upstreams_return(p->upstreams, p->link, LINK_BROKEN);
	} else if (!p->to[0] && p->target->count == 1) {
		upstream_format(p->to, &p->target->at[0]); /* there was no connection to it */
	}
	p->link = NULL;
	p->state = PROXIED_FAILED;
	p->failure = status;
}

void proxied_blame(struct proxied *p, int status, const char *what) {
	upstreams_complain(p->link, what);
	proxied_fail(p, status);
}

int64_t proxied_patience_ms(const struct proxied *p, const char **limit) {
	const struct upstream_limits *limits = &p->limits;
	const bool first = p->state <= PROXIED_WAITS;
	*limit = p->state == PROXIED_TUNNEL ? "upstream-tunnel" : first ? "upstream-first" : "upstream-between";
	return (p->state == PROXIED_CONNECTS ? limits->connect_s
			: p->state == PROXIED_TUNNEL ? limits->tunnel_s
			: first                      ? limits->first_s
										 : limits->between_s) *
		   INT64_C(1000);
}

void proxied_set_timer(struct proxied *p, int64_t now_ms, int64_t left_ms) {
	const int64_t until_ms = now_ms + (left_ms < PROXIED_STALL_MS ? left_ms : PROXIED_STALL_MS);
	if (p->timer_ms && p->timer_ms <= until_ms) return;
	p->timer_ms = until_ms;
	io_timeout(p->loop, p->link->fd, until_ms);
}

void proxied_set_deadline(struct proxied *p) {
	const char *limit;
	p->waits_from_ms = io_now(p->loop);
	proxied_set_timer(p, p->waits_from_ms, proxied_patience_ms(p, &limit));
}

void proxied_note_progress(struct proxied *p) {
	p->stalls = 0;
	p->sent = 0;
	proxied_set_deadline(p);
}

/* --- the request --- */

/* Notes bytes that the upstream has taken. A few bytes do not move the deadline; otherwise a client could hold a
 * connection with one byte a minute. */
static void note_sent(struct proxied *p, size_t n) {
	p->sent += (uint32_t)n;
	if (p->sent >= PROXIED_CONTENT_LEAST || p->complete || p->state == PROXIED_TUNNEL) proxied_note_progress(p);
}

static bool can_write(const struct proxied *p) {
	return p->state > PROXIED_CONNECTS && p->link && !p->blocked && !p->holds;
}

/* Writes bytes to the upstream. Returns how many need not be kept: all, if writing fails, since the upstream may have
 * answered before the end of the request. */
static size_t write_some(struct proxied *p, struct slice bytes) {
	ssize_t n = upstream_link_write(p->link, bytes);
	p->blocked = n == -1 && errno == EAGAIN;
	if (p->blocked) return 0;
	const bool no_memory = n == -1 && (errno == ENOMEM || errno == ENOBUFS);
	if (no_memory && (p->state == PROXIED_WAITS || p->state == PROXIED_TUNNEL)) { /* nothing else ends it soon */
		proxied_fail(p, 503);
		return bytes.length;
	}
	if (n == -1) {
		p->unwanted |= p->state != PROXIED_TUNNEL || errno != EPIPE; /* that of a tunnel may have ended in order */
		return bytes.length;
	}
	note_sent(p, (size_t)n);
	return (size_t)n;
}

/* Sends as much as possible. While the connection is being made, try_connection() does so instead. */
void proxied_flush(struct proxied *p) {
	if (p->content_first) return;
	if (!p->link && p->state == PROXIED_CONNECTS) { /* it was content_first */
		proxied_use(p, false, 0);
		return;
	}
	if (p->holds && !p->complete && p->held <= PROXIED_HELD) {
		if (p->link && p->state != PROXIED_CONNECTS) io_dontwantwrite(p->loop, p->link->fd);
		return;
	}
	if (p->holds) fcgi_set_length(p->out.bytes, p->out.head_unsent, p->complete, p->held);
	p->holds = false;
	struct slice rest = outgoing_rest(&p->out);
	while (rest.length && can_write(p)) rest = outgoing_sent(&p->out, write_some(p, rest));
	if (!p->link || p->state == PROXIED_CONNECTS) return;
	if (rest.length) {
		const bool reads = upstream_link_needs_input(p->link);
		if (reads) io_dontwantwrite(p->loop, p->link->fd);
		if ((reads ? io_wantread(p->loop, p->link->fd) : io_wantwrite(p->loop, p->link->fd)) == -1)
			proxied_fail(p, 503);
		return;
	}
	const bool ends = p->state == PROXIED_TUNNEL && p->complete;
	if (ends && !p->shut) upstream_link_shut(p->link);
	p->shut |= ends;
	io_dontwantwrite(p->loop, p->link->fd);
	if (!p->repeatable || p->state > PROXIED_WAITS) outgoing_forget(&p->out); /* else it may have to be sent again */
}

size_t proxied_unsent(const struct proxied *p) { return outgoing_content(&p->out); }
bool proxied_holds(const struct proxied *p) { return p->holds; }

/* Returns whether content of the request is dropped. */
static bool drops_content(const struct proxied *p) { return p->unwanted || p->state >= PROXIED_ENDED; }

size_t proxied_room(const struct proxied *p) {
	size_t used = proxied_unsent(p);
	used -= used > OUTGOING_OVERHEAD ? OUTGOING_OVERHEAD : used; /* PROXIED_BUFFER bytes fit with their frames */
	if (drops_content(p)) return PROXIED_BUFFER;
	return used < PROXIED_BUFFER ? PROXIED_BUFFER - used : 0;
}

size_t proxied_put(struct proxied *p, struct slice content) {
	if (drops_content(p)) return content.length;
	if (!p->share && content.length > proxied_room(p)) content.length = proxied_room(p);
	if (content.length > OUTGOING_PIECE_MAX) content.length = OUTGOING_PIECE_MAX;
	const size_t length = content.length;
	const bool framed = p->state != PROXIED_TUNNEL && p->out.framing != FRAMED_NOT;
	if (p->state != PROXIED_TUNNEL) {
		p->held += length;
		if (upstreams_refuse_body(&p->limits, p->held)) proxied_fail(p, 413);
	}
	p->content_first &= !length;
	p->expects &= !length;
	if (length >= COPIED_MAX && !framed && !outgoing_unsent(&p->out) && can_write(p))
		slice_drop(&content, write_some(p, content)); /* no copy */
	if (content.length && !outgoing_put(&p->out, content, framed)) proxied_fail(p, 503);
	return length;
}

bool proxied_splices(const struct proxied *p) {
	return can_write(p) && !drops_content(p) && p->state != PROXIED_TUNNEL && p->out.framing == FRAMED_NOT &&
		   !outgoing_unsent(&p->out) && upstream_link_splices(p->link);
}

ssize_t proxied_splice_from(struct proxied *p, int fd, void *buffer, size_t length, size_t *sent) {
	const ssize_t n = io_splice(p->loop, fd, p->link->fd, buffer, length, sent);
	p->held += *sent;
	p->expects &= !*sent;
	if (*sent) note_sent(p, *sent);
	return n;
}

void proxied_put_end(struct proxied *p, struct slice section) {
	char lines[UPSTREAM_TRAILERS_MAX];
	p->complete = true;
	p->content_first = false;
	if (drops_content(p) || p->state == PROXIED_TUNNEL) return;
	if (p->state > PROXIED_CONNECTS) proxied_note_progress(p); /* the rest is up to the upstream */
	const struct slice trailers = {.at = lines, .length = upstream_trailers(section, lines)};
	if (!outgoing_end(&p->out, trailers)) proxied_fail(p, 503);
}

/* --- connecting --- */

/* Creates a 100 (Continue) for a client that waits for it. */
static void say_continue(struct proxied *p) {
	p->continues = false;
	if (!(p->lines = malloc(1))) {
		proxied_fail(p, 503);
		return;
	}
	p->head = (struct upstream_response){.status = 100, .reason = SLICE("Continue")};
	p->state = PROXIED_HEAD;
}

/* Writes to the connection, which shows whether it has been made; after the handshake of TLS, it has been. Returns 0 if
 * so (the proxied request may have failed since then), EAGAIN while it is being made, or another errno. */
static int try_connection(struct proxied *p) {
	const struct slice bytes = p->holds ? (struct slice){0} : outgoing_rest(&p->out);
	const int error = upstream_link_handshake(p->link);
	if (error) return error;
	const ssize_t n = upstream_link_write(p->link, bytes);
	if (n == -1 && errno == ENOTCONN && io_eagain_write(p->loop, p->link->fd) == 0) return EAGAIN; /* BSD */
	if (n == -1 && !(p->link->tls && errno == EAGAIN)) return errno;
	if (n > 0) (void)outgoing_sent(&p->out, (size_t)n);
	p->state = PROXIED_WAITS;
	p->blocked = false;
	proxied_set_deadline(p);
	if (p->continues) say_continue(p);
	proxied_flush(p);
	return 0;
}

/* Gives back a connection that cannot be made. Returns the status to answer if there is no other. */
static int give_back(struct proxied *p, int error) {
	note_address(p);
	return upstreams_return_failed(p->upstreams, p->link, error);
}

void proxied_use(struct proxied *p, bool fresh, int failure) {
	int status;
	while ((p->link = upstreams_take(p->upstreams, p->target, fresh, &p->asker, &p->tried, &status))) {
		const bool reused = p->link->reused;
		p->link->proxied = p;
		p->blocked = false;
		p->state = reused ? PROXIED_WAITS : PROXIED_CONNECTS;
		p->timer_ms = 0;
		proxied_set_deadline(p);
		if (!p->complete || p->upgrades) upstream_link_send_at_once(p->link);
		if (io_want(p->loop, p->link->fd, true, true) == -1) {
			proxied_fail(p, 503);
			return;
		}
		const int error = reused ? 0 : try_connection(p);
		if (reused) proxied_flush(p);
		if (error == 0 || error == EAGAIN) return;
		failure = give_back(p, error);
	}
	proxied_fail(p, status == 502 && failure ? failure : status);
}

void proxied_connect_elsewhere(struct proxied *p, int error) { proxied_use(p, false, give_back(p, error)); }

void proxied_ask_another(struct proxied *p) {
	const bool again = p->repeatable;
	note_address(p);
	upstreams_return_ended(p->upstreams, p->link);
	p->link = NULL;
	p->repeatable = false; /* the request itself may be the reason */
	if (!again) {
		proxied_fail(p, 502);
		return;
	}
	outgoing_rewind(&p->out);
	p->unwanted = false;
	proxied_use(p, true, 502);
}

bool proxied_repeat(struct proxied *p) {
	if (!p->link->reused || !p->repeatable) return false;
	upstreams_return(p->upstreams, p->link, LINK_BROKEN);
	p->link = NULL;
	outgoing_rewind(&p->out);
	p->tried = 0;
	p->unwanted = false;
	proxied_use(p, true, 0);
	p->repeatable = false;
	return true;
}

/* --- events --- */

void proxied_go_on_connecting(struct proxied *p) {
	const int error = try_connection(p);
	if (error == EAGAIN) return;
	if (error) proxied_connect_elsewhere(p, error);
	else if (p->link && io_wantread(p->loop, p->link->fd) == -1) proxied_fail(p, 503);
	p->ready(p->owner);
}

void proxied_writable(struct proxied *p) {
	if (p->state == PROXIED_CONNECTS) {
		proxied_go_on_connecting(p);
		return;
	}
	p->blocked = false;
	proxied_flush(p);
	p->ready(p->owner);
}
