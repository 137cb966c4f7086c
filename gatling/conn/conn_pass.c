/* conn_pass.c - see conn_pass.h. */
#include "gatling/conn/conn_pass.h"

#include <errno.h>
#include <stdlib.h>

#include "gatling/base/text.h"
#include "gatling/exchange/passed_request.h"

enum { COPIED_MAX = 4 * 1024, BATCH_ENOUGH = 16 * 1024, LEAST_ROOM = 4 * 1024, DRAW_LEAST = 64 * 1024 }; /* bytes */

/* There may be thousands: the order of the members leaves no gaps. */
struct conn_pass {
	struct passed_request passed;
	char *trailers;           /* the part of the request's trailer section that has come, or NULL */
	uint32_t trailers_length; /* bytes */
	uint32_t come;            /* bytes of the content of the request since the deadline was set */
	struct body body;         /* of the request */
	uint8_t persistence;      /* enum persistence */
	bool chunked : 1;         /* the content of the response, to the client */
	bool closed : 1;          /* the last chunk has been added */
	bool handed : 1;          /* a piece of it is in the batch */
	bool sending : 1;         /* the batch is being sent: not all of it has left */
	bool waited : 1;          /* it waited for the client at the end of the last run */
	bool begun : 1;           /* some content of the request, or a head of a response, has come */
	bool tunnel : 1;
	bool trickles : 1; /* the last read brought little content */
	bool stalled : 1;  /* the socket was full after the last write */
};

bool conn_pass_begin(struct conn *c, const struct request *q, const struct response *r, enum persistence persistence) {
	struct conn_pass *p = malloc(sizeof *p);
	struct arrived_request arrived = {.request = q,
									  .kept = c->waiting,
									  .started_ns = c->waiting ? c->waiting->started_ns : c->outgoing->started_ns,
									  .client = &c->peer,
									  .forwarding = (enum forwarding)c->forwarding,
									  .proxy = c->peer,
									  .port = c->port,
									  .secure = c->secure};
	if (c->forwarding && !conn_other_end(c, &arrived.proxy)) arrived.proxy = peer_unknown; /* it is gone */
	if (p) *p = (struct conn_pass){.persistence = (uint8_t)persistence};
	if (!p || !passed_request_begin(&p->passed, c->context->upstreams, &arrived, r)) {
		free(p);
		return false;
	}
	body_start_any(&p->body, q->framing, q->content_length);
	c->pass = p;
	c->has_pass = true;
	return true;
}

size_t conn_pass_memory(const struct conn *c) {
	return sizeof *c->pass + c->pass->trailers_length + passed_request_memory(&c->pass->passed);
}

void conn_pass_on_ready(struct conn *c, void (*ready)(void *conn)) {
	passage_on_ready(c->pass->passed.passage, ready, c);
}

/* After the content of its request, the client may send another request, end its side, or go away. */
bool conn_pass_wants_input(const struct conn *c) { return !c->input && !c->input_ended; }

bool conn_pass_is_tunnel(const struct conn *c) { return c->pass->tunnel; }
bool conn_pass_has_request(const struct conn *c) { return !body_pending(&c->pass->body) && !c->pass->tunnel; }
bool conn_pass_has_answered(const struct conn *c) { return c->pass->passed.status; }

/* Returns how many bytes of content can be passed on; 0: too few to be worth a call. */
static size_t room(const struct conn_pass *p) {
	size_t room = passage_room(p->passed.passage);
	return room >= LEAST_ROOM ? room : 0;
}

bool conn_pass_lacks_content(const struct conn *c) {
	const struct conn_pass *p = c->pass;
	bool waits_for_100 = passed_request_kept(&p->passed)->expect_continue && !p->begun;
	return !p->sending && body_pending(&p->body) && room(p) && !waits_for_100;
}

bool conn_pass_waits_for_client(const struct conn *c) {
	const struct conn_pass *p = c->pass;
	return p->sending || conn_pass_lacks_content(c);
}

struct kept_request *conn_pass_end(struct conn *c) {
	struct conn_pass *p = c->pass;
	struct kept_request *kept = passed_request_end(&p->passed, &c->context->batches, &c->peer, COUNT_HTTP1);
	free(p->trailers);
	free(p);
	c->pass = NULL;
	c->has_pass = false;
	return kept;
}

/* --- the content of the request --- */

/* Keeps bytes of the trailer section. */
static void keep_trailers(struct conn_pass *p, struct slice bytes) {
	char *kept = realloc(p->trailers, p->trailers_length + bytes.length);
	if (!kept) {
		passage_fail(p->passed.passage, 503);
		return;
	}
	p->trailers = kept;
	(void)text_copy(kept + p->trailers_length, bytes);
	p->trailers_length += (uint32_t)bytes.length;
}

/* Notes that bytes of the body have come: enough of them, or the last ones, move the deadline. */
static void note_come(struct conn_pass *p, struct conn_run *run, size_t n) {
	p->begun = true;
	p->come += (uint32_t)n;
	if (!body_pending(&p->body))
		passage_put_end(p->passed.passage, (struct slice){.at = p->trailers, .length = p->trailers_length});
	if (p->come < PASSAGE_CONTENT_LEAST && body_pending(&p->body)) return;
	run->progress = true;
	p->come = 0;
}

bool conn_pass_draws(const struct conn *c) {
	return c->state == CONN_PASS && !c->tls && !c->input && !c->pass->trickles &&
		   body_rest(&c->pass->body) >= DRAW_LEAST && passage_draws(c->pass->passed.passage);
}

bool conn_pass_draw(struct conn *c, struct conn_run *run) {
	struct conn_pass *p = c->pass;
	const uint64_t rest = body_rest(&p->body);
	const size_t most = rest < CONN_SCRATCH ? (size_t)rest : CONN_SCRATCH;
	size_t sent;
	const ssize_t n = passage_draw(p->passed.passage, c->fd, c->context->scratch, most, &sent);
	if (n <= 0) return n == -1 && errno == EAGAIN;
	p->trickles = n < LEAST_ROOM; /* each piece would take a page in the kernel */
	run->input = (struct slice){.at = c->context->scratch, .length = (size_t)n - sent};
	body_take(&p->body, sent);
	note_come(p, run, sent);
	return true;
}

/* Returns false if the chunks are malformed. */
static bool take_content(struct conn_pass *p, struct conn_run *run) {
	struct slice content;
	if (run->input.length >= LEAST_ROOM) p->trickles = false;
	while (run->input.length && !p->tunnel && body_pending(&p->body)) {
		if (!room(p)) passage_flush(p->passed.passage);
		size_t free_room = room(p), most = run->input.length < free_room ? run->input.length : free_room;
		if (!free_room) return true;
		const bool in_trailers = body_in_trailers(&p->body);
		int n = body_read(&p->body, run->input.at, most, &content);
		if (n < 0) return false;
		if (in_trailers) keep_trailers(p, slice_first(run->input, (size_t)n));
		run->input = slice_rest(run->input, (size_t)n);
		if (content.length) (void)passage_put(p->passed.passage, content);
		note_come(p, run, (size_t)n);
	}
	for (size_t n = 1; p->tunnel && run->input.length && n; run->input = slice_rest(run->input, n)) {
		n = passage_put(p->passed.passage, run->input);
		passage_flush(p->passed.passage);
	}
	passage_flush(p->passed.passage);
	return true;
}

/* --- the response --- */

/* Decides how the end of the response is marked, and whether another request may follow. */
static enum body_framing settle(struct conn *c, const struct upstream_response *head) {
	struct conn_pass *p = c->pass;
	bool unknown = head->until_close || head->framing == BODY_CHUNKED;
	if (body_pending(&p->body)) c->ending = CONN_ENDING_LINGER; /* the client is still sending */
	if (c->ending || (unknown && passed_request_kept(&p->passed)->minor == 0)) p->persistence = PERSIST_NOT;
	if (p->persistence == PERSIST_NOT && !c->ending) c->ending = CONN_ENDING_CLOSE;
	p->chunked = unknown && passed_request_kept(&p->passed)->minor >= 1;
	return p->chunked ? BODY_CHUNKED : unknown ? BODY_NONE : head->framing;
}

/* Returns false without memory, or for a client that cannot use the response. */
static bool add_head(struct conn *c) {
	struct conn_pass *p = c->pass;
	struct slice lines;
	const struct upstream_response *head = passage_head(p->passed.passage, &lines);
	bool interim = head->status < 200;
	iob *batch = c->outgoing->iob;
	p->tunnel = head->status == 101;
	p->begun = true;
	if (interim && !p->tunnel && passed_request_kept(&p->passed)->minor == 0) return true; /* unknown to HTTP/1.0 */
	if (interim && !p->tunnel) return http1_write_interim(batch, head->status, head->reason, lines) == 0;
	p->passed.status = head->status;
	if (p->tunnel && c->input_ended) return false; /* it would go one way only */
	if (p->tunnel) {
		passed_request_slim(&p->passed);
		c->ending = CONN_ENDING_CLOSE;
		return http1_write_upgrade(batch, head->reason, lines) == 0;
	}
	enum body_framing framing = settle(c, head);
	return http1_write_passed(batch, head, lines, c->context->common_fields[c->secure],
							  (enum persistence)p->persistence, framing) == 0;
}

/* Adds a piece of content. Small ones are copied, so that they leave together with those around them. Returns false
 * without memory. */
static bool add_piece(struct conn *c, struct slice piece) {
	struct conn_pass *p = c->pass;
	char size[32];
	iob *batch = c->outgoing->iob;
	size_t n = p->chunked ? fmt_xlonglong(size, piece.length) : 0;
	p->passed.bytes += piece.length;
	p->handed = piece.length > COPIED_MAX;
	if (p->chunked && iob_addcopy(batch, size, (size_t)(text_copy(size + n, SLICE("\r\n")) - size)) == -1) return false;
	if ((p->handed ? iob_addbuf(batch, piece.at, piece.length, NULL, NULL)
				   : iob_addcopy(batch, piece.at, piece.length)) == -1)
		return false;
	if (!p->handed) passage_take(p->passed.passage);
	return !p->chunked || iob_addcopy(batch, "\r\n", 2) == 0;
}

/* Returns false without memory. */
static bool add_end(iob *batch, struct slice trailers) {
	return iob_addcopy(batch, "0\r\n", 3) == 0 && iob_addcopy(batch, trailers.at, trailers.length) == 0 &&
		   iob_addcopy(batch, "\r\n", 2) == 0;
}

/* Adds heads and content of the response to the batch. Returns CONN_PASS_WAITS if no more has come, or it is enough. */
static enum conn_pass_result add_next(struct conn *c) {
	struct conn_pass *p = c->pass;
	iob *batch = c->outgoing->iob;
	while (!p->handed && iob_bytesleft(batch) < BATCH_ENOUGH) {
		enum passage_state state = passage_state(p->passed.passage);
		if (state <= PASSAGE_WAITS) break;
		if (state == PASSAGE_HEAD) {
			if (!add_head(c)) return CONN_PASS_BROKEN;
			passage_take_head(p->passed.passage);
		} else if (state <= PASSAGE_TUNNEL) {
			struct slice piece = passage_content(p->passed.passage);
			if (piece.length && !add_piece(c, piece)) return CONN_PASS_BROKEN;
			if (!piece.length && passage_state(p->passed.passage) == state) break;
		} else if (state == PASSAGE_ENDED && p->chunked && !p->closed) {
			p->closed = true;
			if (!add_end(batch, passage_trailers(p->passed.passage))) return CONN_PASS_BROKEN;
		} else if (iob_bytesleft(batch)) {
			break; /* that is sent first */
		} else {
			return state == PASSAGE_ENDED ? CONN_PASS_DONE : p->passed.status ? CONN_PASS_BROKEN : CONN_PASS_FAILED;
		}
	}
	return CONN_PASS_WAITS;
}

/* Fills the batch. Returns CONN_PASS_WAITS if there may be something to send. */
static enum conn_pass_result prepare(struct conn *c) {
	if (!conn_take_batch(c)) return CONN_PASS_BROKEN;
	enum conn_pass_result next = add_next(c);
	c->pass->sending = next == CONN_PASS_WAITS && iob_bytesleft(c->outgoing->iob);
	if (!c->pass->sending) conn_return_batch(c);
	return next;
}

static void note_sent(struct conn *c, struct conn_run *run, uint64_t sent) {
	c->context->sent += sent;
	run->progress |= sent > 0;
}

static enum conn_pass_result move(struct conn *c, struct conn_run *run) {
	struct conn_pass *p = c->pass;
	const uint64_t relayed = passage_relayed(p->passed.passage);
	if (relayed) conn_limit_unsent(c);
	p->passed.bytes += relayed;
	note_sent(c, run, relayed);
	for (;;) {
		if (!take_content(p, run)) return p->passed.status ? CONN_PASS_BROKEN : CONN_PASS_MALFORMED;
		enum conn_pass_result next = p->sending ? CONN_PASS_WAITS : prepare(c);
		passage_relay(p->passed.passage, p->sending || p->stalled || c->tls ? -1 : c->fd);
		if (!p->sending) return next;
		uint64_t sent = 0;
		enum iob_result result =
			conn_transmit(c, c->outgoing->iob, run->resumed ? c->context->share : CONN_SHARE_MOST, IO_LAST, &sent);
		note_sent(c, run, sent);
		if (result == IOB_FAILED) return CONN_PASS_BROKEN;
		p->stalled = run->resumed || result == IOB_AGAIN;
		if (result == IOB_AGAIN) return CONN_PASS_WAITS;
		if (p->handed) passage_take(p->passed.passage);
		p->handed = p->sending = false;
	}
}

enum conn_pass_result conn_pass_go_on(struct conn *c, struct conn_run *run) {
	struct conn_pass *p = c->pass;
	const struct linger none = {.l_onoff = 1};
	enum conn_pass_result result = move(c, run);
	bool waits = result == CONN_PASS_WAITS && conn_pass_waits_for_client(c);
	run->progress |= waits != p->waited; /* it has another deadline now */
	p->waited = waits;
	/* HTTP/1.0: the part that has come must not look like the whole */
	if (result == CONN_PASS_BROKEN && p->passed.status && passed_request_kept(&p->passed)->minor == 0)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	return result;
}
