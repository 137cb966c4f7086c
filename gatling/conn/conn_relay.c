/* conn_relay.c - see conn_relay.h. */
#include "gatling/conn/conn_relay.h"

#include <errno.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/http/field_line.h"

/* Bytes of the status line, of fields such as Server and Date, and of Connection. */
enum { LINES_ROOM = 512 };

enum { COPIED_MAX = 4 * 1024, BATCH_ENOUGH = 16 * 1024, LEAST_ROOM = 4 * 1024, SPLICE_LEAST = 64 * 1024 }; /* bytes */

/* What HTTP/1.1 keeps for an exchange, behind it. There may be thousands: the order of the members leaves no gaps. */
struct conn_relay {
	char *trailers;           /* the part of the request's trailer section that has come, or NULL */
	uint32_t trailers_length; /* bytes */
	struct body body;         /* of the request */
	uint8_t persistence;      /* enum persistence */
	bool chunked : 1;         /* the content of the response, to the client */
	bool sending : 1;         /* the batch is being sent: not all of it has left */
	bool waited : 1;          /* it waited for the client at the end of the last run */
	bool trickles : 1;        /* the last read brought little content */
	bool stalled : 1;         /* the socket was full after the last write */
};

static struct conn_relay *relay_of(const struct conn *c) { return (void *)(c->exchange + 1); }

bool conn_keep_exchange(struct conn *c, const struct exchange *x, const struct response *r) {
	c->exchange = exchange_keep(x, r, sizeof(struct conn_relay));
	return c->exchange;
}

void conn_relay_begin(struct conn *c, enum persistence persistence) {
	const struct request *q = c->exchange->request;
	struct conn_relay *p = relay_of(c);
	free(p->trailers);
	*p = (struct conn_relay){.persistence = (uint8_t)persistence};
	body_start_any(&p->body, q->framing, q->content_length);
}

void conn_end_exchange(struct conn *c) {
	if (!c->exchange) return;
	free(relay_of(c)->trailers);
	exchange_end(c->exchange);
	c->exchange = NULL;
}

size_t conn_exchange_memory(const struct conn *c) {
	return exchange_memory(c->exchange) + relay_of(c)->trailers_length;
}

bool conn_relay_has_request(const struct conn *c) { return !body_pending(&relay_of(c)->body) && !c->exchange->tunnel; }

/* Returns how many bytes of content can be passed on; 0: too few to be worth a call. */
static size_t room(const struct conn *c) {
	const size_t room = proxied_room(c->exchange->proxied);
	return room >= LEAST_ROOM ? room : 0;
}

enum wait_for conn_relay_waits(const struct conn *c) {
	const struct conn_relay *p = relay_of(c);
	if (p->sending) return WAIT_CLIENT_TAKES;
	if (body_pending(&p->body) && room(c) && !exchange_waits_for_100(c->exchange)) return WAIT_CLIENT_SENDS;
	return c->exchange->tunnel ? WAIT_TUNNEL : WAIT_UPSTREAM;
}

/* --- the content of the request --- */

/* Keeps bytes of the trailer section. */
static void keep_trailers(struct conn *c, struct slice bytes) {
	struct conn_relay *p = relay_of(c);
	char *kept = realloc(p->trailers, p->trailers_length + bytes.length);
	if (!kept) {
		proxied_fail(c->exchange->proxied, 503);
		return;
	}
	p->trailers = kept;
	(void)text_copy(kept + p->trailers_length, bytes);
	p->trailers_length += (uint32_t)bytes.length;
}

/* Notes that bytes of the body have come: enough of them, or the last ones, move the deadline. */
static void note_come(struct conn *c, struct conn_run *run, size_t n) {
	const struct conn_relay *p = relay_of(c);
	const struct slice trailers = {.at = p->trailers, .length = p->trailers_length};
	run->progress |= exchange_put(c->exchange, n, body_pending(&p->body) ? NULL : &trailers);
}

bool conn_relay_splices(const struct conn *c) {
	return !c->tls && !c->input && !relay_of(c)->trickles && body_rest(&relay_of(c)->body) >= SPLICE_LEAST &&
		   proxied_splices(c->exchange->proxied);
}

bool conn_relay_splice(struct conn *c, struct conn_run *run) {
	struct conn_relay *p = relay_of(c);
	const uint64_t rest = body_rest(&p->body);
	const size_t most = rest < CONN_SCRATCH ? (size_t)rest : CONN_SCRATCH;
	size_t sent;
	const ssize_t n = proxied_splice_from(c->exchange->proxied, c->fd, c->context->scratch, most, &sent);
	if (n <= 0) return n == -1 && errno == EAGAIN;
	p->trickles = n < LEAST_ROOM; /* each piece would take a page in the kernel */
	run->input = (struct slice){.at = c->context->scratch, .length = (size_t)n - sent};
	body_take(&p->body, sent);
	note_come(c, run, sent);
	return true;
}

/* Returns false if the chunks are malformed. */
static bool take_content(struct conn *c, struct conn_relay *p, struct conn_run *run) {
	struct proxied *proxied = c->exchange->proxied;
	struct slice content;
	if (!run->input.length) return true;
	if (run->input.length >= LEAST_ROOM) p->trickles = false;
	while (run->input.length && !c->exchange->tunnel && body_pending(&p->body)) {
		if (!room(c)) proxied_flush(proxied);
		size_t free_room = room(c), most = run->input.length < free_room ? run->input.length : free_room;
		if (!free_room) return true;
		const bool in_trailers = body_in_trailers(&p->body);
		int n = body_read(&p->body, run->input.at, most, &content);
		if (n < 0) return false;
		if (in_trailers) keep_trailers(c, slice_first(run->input, (size_t)n));
		run->input = slice_rest(run->input, (size_t)n);
		if (content.length) (void)proxied_put(proxied, content);
		note_come(c, run, (size_t)n);
	}
	for (size_t n = 1; c->exchange->tunnel && run->input.length && n; run->input = slice_rest(run->input, n)) {
		n = proxied_put(proxied, run->input);
		proxied_flush(proxied);
	}
	proxied_flush(proxied);
	return true;
}

/* --- the response --- */

/* Returns what the response is added to, or NULL without memory. */
static iob *batch_of(struct conn *c) {
	return c->outgoing || response_batch_take(&c->context->batches, BATCH_LARGE, &c->outgoing) ? c->outgoing->iob
																							   : NULL;
}

/* Decides how the end of the response is marked, and whether another request may follow. */
static enum body_framing settle(struct conn *c, const struct upstream_response *head) {
	struct conn_relay *p = relay_of(c);
	bool unknown = head->until_close || head->framing == BODY_CHUNKED;
	if (body_pending(&p->body)) c->ending = CONN_ENDING_LINGER; /* the client is still sending */
	if (c->ending || (unknown && c->exchange->request->minor == 0)) p->persistence = PERSIST_NOT;
	if (p->persistence == PERSIST_NOT && !c->ending) c->ending = CONN_ENDING_CLOSE;
	p->chunked = unknown && c->exchange->request->minor >= 1;
	return p->chunked ? BODY_CHUNKED : unknown ? BODY_NONE : head->framing;
}

static int add_head(void *conn, const struct upstream_response *head, struct slice lines) {
	struct conn *c = conn;
	struct slice common = {0}, connection = {0};
	enum body_framing framing = BODY_NONE;
	if (head->status == 101) {
		if (c->input_ended) return 0; /* it would go one way only */
		c->ending = CONN_ENDING_CLOSE;
		connection = SLICE("Connection: upgrade\r\nUpgrade: websocket\r\n");
	} else if (head->status >= 200) {
		framing = settle(c, head);
		common = c->context->common_fields[c->secure];
		connection = http1_persistence[relay_of(c)->persistence];
	}
	iob *const batch = batch_of(c);
	char *start = batch ? iob_reserve(batch, LINES_ROOM + head->reason.length + lines.length) : NULL;
	if (!start) return 0;
	char *at = text_copy_number(text_copy(start, SLICE("HTTP/1.1 ")), (uint64_t)head->status);
	at = TEXT_JOIN(at, SLICE(" "), head->reason, SLICE("\r\n"), common, connection, lines);
	if (framing == BODY_CHUNKED) at = text_copy(at, SLICE("Transfer-Encoding: chunked\r\n"));
	if (framing == BODY_LENGTH) at = field_line_put_length(at, head->content_length);
	iob_commit(batch, (size_t)(text_copy(at, SLICE("\r\n")) - start));
	return head->status;
}

/* Small pieces are copied, so that they leave together with those around them. */
static bool add_piece(void *conn, struct slice piece, bool *kept) {
	struct conn *c = conn;
	char size[32];
	iob *const batch = batch_of(c);
	const bool chunked = relay_of(c)->chunked;
	size_t n = chunked ? fmt_xlonglong(size, piece.length) : 0;
	if (!batch) return false;
	*kept = piece.length > COPIED_MAX;
	if (chunked && iob_addcopy(batch, size, (size_t)(text_copy(size + n, SLICE("\r\n")) - size)) == -1) return false;
	if ((*kept ? iob_addbuf(batch, piece.at, piece.length, NULL, NULL) : iob_addcopy(batch, piece.at, piece.length)) ==
		-1)
		return false;
	return !chunked || iob_addcopy(batch, "\r\n", 2) == 0;
}

static bool add_end(void *conn, struct slice trailers, bool *added) {
	struct conn *c = conn;
	if (!relay_of(c)->chunked) return true;
	iob *const batch = batch_of(c);
	*added = true;
	return batch && iob_addcopy(batch, "0\r\n", 3) == 0 && iob_addcopy(batch, trailers.at, trailers.length) == 0 &&
		   iob_addcopy(batch, "\r\n", 2) == 0;
}

const struct carrier conn_carrier = {
	.protocol = COUNT_HTTP1, .enough = BATCH_ENOUGH, .head = add_head, .content = add_piece, .end = add_end};

/* Fills the batch, if something has come. Returns RELAY_WAITS if there may be something to send. */
static enum exchange_relayed prepare(struct conn *c, struct conn_relay *p) {
	enum exchange_relayed next = exchange_relay(c->exchange);
	p->sending = next == RELAY_WAITS && c->outgoing && iob_bytesleft(c->outgoing->iob);
	if (!p->sending && c->outgoing) response_batch_return(&c->context->batches, &c->outgoing);
	return next;
}

static void note_sent(struct conn *c, struct conn_run *run, uint64_t sent) {
	c->context->sent += sent;
	run->progress |= sent > 0;
}

static enum exchange_relayed move(struct conn *c, struct conn_relay *p, struct conn_run *run, bool *malformed) {
	struct proxied *proxied = c->exchange->proxied;
	const uint64_t relayed = proxied_spliced(proxied);
	if (relayed) conn_limit_unsent(c);
	c->exchange->bytes += relayed;
	note_sent(c, run, relayed);
	for (;;) {
		*malformed = !take_content(c, p, run);
		if (*malformed) return RELAY_BROKEN;
		enum exchange_relayed next = p->sending ? RELAY_WAITS : prepare(c, p);
		if (!p->sending) return next;
		uint64_t sent = 0;
		enum iob_result result =
			conn_transmit(c, c->outgoing->iob, run->resumed ? c->context->share : CONN_SHARE_MOST, IO_LAST, &sent);
		note_sent(c, run, sent);
		if (result == IOB_FAILED) return RELAY_BROKEN;
		p->stalled = run->resumed || result == IOB_AGAIN;
		if (result == IOB_AGAIN) return RELAY_WAITS;
		exchange_taken(c->exchange);
		p->sending = false;
		if (!c->exchange->ended) continue;
		response_batch_return(&c->context->batches, &c->outgoing);
		return RELAY_DONE;
	}
}

enum exchange_relayed conn_relay(struct conn *c, struct conn_run *run, bool *malformed) {
	const struct linger none = {.l_onoff = 1};
	struct conn_relay *p = relay_of(c);
	enum exchange_relayed result = move(c, p, run, malformed);
	if (result == RELAY_WAITS) proxied_splice_to(c->exchange->proxied, p->sending || p->stalled || c->tls ? -1 : c->fd);
	const bool waits = result == RELAY_WAITS && conn_relay_waits(c) <= WAIT_CLIENT_TAKES;
	*malformed &= !c->exchange->status;
	run->progress |= waits != p->waited; /* it has another deadline now */
	p->waited = waits;
	/* HTTP/1.0: the part that has come must not look like the whole */
	if (result == RELAY_BROKEN && c->exchange->status && c->exchange->request->minor == 0)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	return result;
}
