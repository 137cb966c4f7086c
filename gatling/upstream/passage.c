/* passage.c - see passage.h. */
#include "gatling/upstream/passage.h"

#include <errno.h>
#include <stdlib.h>

#include "gatling/base/gzip.h"
#include "gatling/base/text.h"
#include "gatling/upstream/outgoing.h"
#include "gatling/upstream/upstream_gzip.h"

static const char cut_short[] = "has ended a connection without a whole response";

/* There may be thousands: the order of the members leaves hardly a gap. */
struct passage {
	struct upstreams *upstreams;
	struct upstream_link *link; /* NULL: it has failed */
	struct upstream_target *target;
	struct fcgi_records *records; /* of the response; NULL: it comes as it is */
	struct gzip_writer *gzip;     /* that compresses it, until all of that is taken; NULL: none */
	void (*ready)(void *owner);
	void *owner;
	struct passage_share *share; /* NULL: none */
	uint64_t held;               /* bytes of content that have been put */
	enum passage_state state;
	int failure;
	unsigned tried; /* addresses: a bit for each */
	unsigned interims;
	uint32_t answered_ms; /* until there is a response, the time when it began */
	bool starved;
	bool head_only, upgrades;
	bool gzips;       /* the client wants gzip, and the head of the response has not come */
	bool must_change; /* the protocol: the client takes no other success (RFC 8441, section 5) */
	bool repeatable;  /* it has no content, and may be sent twice: nothing of it is dropped before a response comes */
	bool continues;   /* the client waits for a 100, which a program does not send */
	bool holds;       /* nothing is sent until the length of the content is known, or over PASSAGE_HELD */
	bool complete;    /* all of the request has been put */
	bool shut;        /* the sending side of the connection */
	bool blocked;     /* the socket is full */
	bool unwanted;    /* the upstream takes no more of it: the connection is lost, but for what has come */
	bool upstream_ended; /* it sends nothing more */
	struct outgoing out;
	struct {
		char *bytes;
		size_t at, length, size;
	} in; /* from `at` on: read, but not used up */
	struct upstream_response head;
	char *lines; /* of the head, until it has been taken, then the trailer section; head.lines: its length */
	struct body body;
	struct slice piece; /* of the content, which the owner has */
};

/* What is still being compressed is content. */
enum passage_state passage_state(const struct passage *p) {
	return p->state == PASSAGE_ENDED && p->gzip ? PASSAGE_CONTENT : p->state;
}

int passage_failure(const struct passage *p) { return p->failure; }
unsigned passage_answered_ms(const struct passage *p) { return p->answered_ms; }

bool passage_format(const struct passage *p, char *out) {
	if (p->link) upstreams_format(p->link, out);
	return p->link;
}

size_t passage_memory(const struct passage *p) {
	return sizeof *p + (p->records ? sizeof *p->records : 0) + (p->gzip ? (size_t)GZIP_WRITER : 0) + p->out.size +
		   p->in.size + (p->lines ? p->head.lines : 0);
}

static io_loop *loop_of(const struct passage *p) { return upstreams_loop(p->upstreams); }

static void complain(void *passage, struct slice line) {
	const struct passage *p = passage;
	upstreams_report(p->link, line);
}

static void fail(struct passage *p, int status) {
	if (p->link && p->records) fcgi_finish(p->records, complain, p);
	if (p->link) upstreams_return(p->upstreams, p->link, LINK_BROKEN);
	p->link = NULL;
	p->state = PASSAGE_FAILED;
	p->failure = status;
}

/* Fails because of what the upstream does. */
static void blame(struct passage *p, int status, const char *what) {
	upstreams_complain(p->link, what);
	fail(p, status);
}

static void set_deadline(const struct passage *p) {
	int64_t ms = p->state == PASSAGE_CONNECTS ? UPSTREAM_CONNECT_MS
				 : p->state == PASSAGE_TUNNEL ? PASSAGE_TUNNEL_MS
											  : PASSAGE_WAIT_MS;
	io_timeout(loop_of(p), p->link->fd, io_now(loop_of(p)) + ms);
}

/* --- the request --- */

static size_t unsent(const struct passage *p) { return outgoing_rest(&p->out).length; }

/* What has been sent is kept as long as it may have to be sent again. */
static void forget_sent(struct passage *p) {
	if (!unsent(p) && !(p->repeatable && p->state <= PASSAGE_WAITS)) outgoing_forget(&p->out);
}

static bool can_write(const struct passage *p) {
	return p->state > PASSAGE_CONNECTS && p->link && !p->blocked && !p->holds;
}

/* Writes bytes to the upstream. Returns how many need not be kept: all, if it takes no more, which may be because it
 * has answered before the end of the request. */
static size_t write_some(struct passage *p, struct slice bytes) {
	ssize_t n = io_trywrite(loop_of(p), p->link->fd, bytes.at, bytes.length);
	p->blocked = n == -1 && errno == EAGAIN;
	if (p->blocked) return 0;
	if (n == -1) {
		p->unwanted = true;
		p->repeatable &= p->link->reused;
		return bytes.length;
	}
	set_deadline(p);
	return (size_t)n;
}

/* Sends what it can. Before there is a connection, use() and passage_writable() do. */
void passage_flush(struct passage *p) {
	if (p->holds && !p->complete && p->held <= PASSAGE_HELD) return;
	if (p->holds) fcgi_set_length(p->out.bytes, p->out.head_unsent, p->complete, p->held);
	p->holds = false;
	while (can_write(p) && unsent(p)) outgoing_sent(&p->out, write_some(p, outgoing_rest(&p->out)));
	if (!p->link || p->state == PASSAGE_CONNECTS) return;
	if (p->state == PASSAGE_TUNNEL && p->complete && !unsent(p) && !p->shut)
		p->shut = shutdown(p->link->fd, SHUT_WR) == 0;
	if (!unsent(p)) io_dontwantwrite(loop_of(p), p->link->fd);
	else if (io_wantwrite(loop_of(p), p->link->fd) == -1) fail(p, 503);
	forget_sent(p);
}

size_t passage_unsent(const struct passage *p) { return outgoing_content(&p->out); }

/* Returns whether content of the request is dropped. */
static bool drops_content(const struct passage *p) { return p->unwanted || p->state >= PASSAGE_ENDED; }

size_t passage_room(const struct passage *p) {
	size_t used = passage_unsent(p);
	used -= used > OUTGOING_OVERHEAD ? OUTGOING_OVERHEAD : used; /* PASSAGE_BUFFER bytes fit with their frames */
	if (drops_content(p)) return PASSAGE_BUFFER;
	return used < PASSAGE_BUFFER ? PASSAGE_BUFFER - used : 0;
}

size_t passage_put(struct passage *p, struct slice content) {
	if (drops_content(p)) return content.length;
	const size_t room = passage_room(p) < OUTGOING_PIECE_MAX ? passage_room(p) : OUTGOING_PIECE_MAX;
	if (content.length > room) content.length = room;
	const size_t length = content.length;
	const bool framed = p->state != PASSAGE_TUNNEL && p->out.framing != FRAMED_NOT;
	p->held += length;
	if (length && !framed && !unsent(p) && can_write(p)) slice_drop(&content, write_some(p, content)); /* no copy */
	if (content.length && !outgoing_put(&p->out, content, framed)) fail(p, 503);
	return length;
}

void passage_put_end(struct passage *p, struct slice section) {
	static _Thread_local char lines[UPSTREAM_TRAILERS_MAX];
	p->complete = true;
	if (drops_content(p) || p->state == PASSAGE_TUNNEL) return;
	const struct slice trailers = {.at = lines, .length = upstream_trailers(section, lines)};
	if (!outgoing_end(&p->out, trailers)) fail(p, 503);
}

/* --- connecting --- */

/* Answers a client that waits for a 100. */
static void say_continue(struct passage *p) {
	p->continues = false;
	if (!(p->lines = malloc(1))) {
		fail(p, 503);
		return;
	}
	p->head = (struct upstream_response){.status = 100, .reason = SLICE("Continue")};
	p->state = PASSAGE_HEAD;
}

/* Sends what there is, which shows whether there is a connection. Returns an errno, which is EAGAIN as long as it is
 * being made; 0: there is one, unless the passage has failed since. */
static int try_connection(struct passage *p) {
	const struct slice bytes = p->holds ? (struct slice){0} : outgoing_rest(&p->out);
	const ssize_t n = io_trywrite(loop_of(p), p->link->fd, bytes.at, bytes.length);
	if (n == -1 && errno == ENOTCONN && io_eagain_write(loop_of(p), p->link->fd) == 0) return EAGAIN; /* BSD */
	if (n == -1) return errno;
	outgoing_sent(&p->out, (size_t)n);
	p->state = PASSAGE_WAITS;
	p->link->connected = true;
	p->blocked = false;
	set_deadline(p);
	if (p->continues) say_continue(p);
	passage_flush(p);
	return 0;
}

/* Takes a connection, to another address if one cannot be connected to. failure: why there has been no other so far, as
 * what to answer; 0: none was tried. */
static void use(struct passage *p, bool fresh, int failure) {
	int status;
	while ((p->link = upstreams_take(p->upstreams, p->target, fresh, &p->tried, &status))) {
		const bool reused = p->link->reused;
		p->link->passage = p;
		p->blocked = false;
		p->state = reused ? PASSAGE_WAITS : PASSAGE_CONNECTS;
		set_deadline(p);
		if (!p->complete || p->upgrades) upstreams_send_at_once(p->link);
		if (io_wantwrite(loop_of(p), p->link->fd) == -1 || io_wantread(loop_of(p), p->link->fd) == -1) {
			fail(p, 503);
			return;
		}
		const int error = reused ? 0 : try_connection(p);
		if (reused) passage_flush(p);
		if (error == 0 || error == EAGAIN) return;
		failure = upstreams_return_failed(p->upstreams, p->link, error);
	}
	fail(p, status == 502 && failure ? failure : status);
}

/* Tries another address. error: why this one cannot be connected to. */
static void connect_elsewhere(struct passage *p, int error) {
	use(p, false, upstreams_return_failed(p->upstreams, p->link, error));
}

/* Sends the request once more: an upstream may close a connection at the moment when it is used again. Returns false if
 * that cannot be. */
static bool repeat(struct passage *p) {
	if (!p->link->reused || !p->repeatable) return false;
	upstreams_return(p->upstreams, p->link, LINK_BROKEN);
	p->link = NULL;
	outgoing_rewind(&p->out);
	p->tried = 0;
	p->unwanted = false;
	use(p, true, 0);
	p->repeatable = false;
	return true;
}

/* RFC 9110, section 9.2.2. */
static bool is_idempotent(struct slice method) {
	static const struct slice methods[] = {SLICE("GET"), SLICE("HEAD"), SLICE("OPTIONS"), SLICE("PUT"),
										   SLICE("DELETE")};
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (slice_equal(method, methods[i])) return true;
	return false;
}

/* Writes what the request begins with to out. Returns its length. */
static size_t write_head(char *out, enum upstream_protocol protocol, const struct upstream_request *r) {
	switch (protocol) {
	case UPSTREAM_HTTP: break;
	case UPSTREAM_FCGI: return upstream_fcgi_head(out, r);
	case UPSTREAM_SCGI: return upstream_scgi_head(out, r);
	}
	return upstream_request_head(out, r);
}

/* Whether the response to a request over that protocol comes as records. NULL: ENOMEM. */
static bool begin_records(struct passage *p, enum upstream_protocol protocol) {
	if (protocol == UPSTREAM_FCGI) p->records = calloc(1, sizeof *p->records);
	return protocol != UPSTREAM_FCGI || p->records;
}

struct passage *passage_new(struct upstreams *u, const struct upstream_target *target, const struct upstream_request *r,
							struct passage_share *share) {
	enum { HEAD_ROOM = (int)UPSTREAM_CGI_MAX > (int)UPSTREAM_REQUEST_MAX ? UPSTREAM_CGI_MAX : UPSTREAM_REQUEST_MAX };
	static _Thread_local char head[HEAD_ROOM];
	const bool http = target->protocol == UPSTREAM_HTTP;
	const struct request *q = r->request;
	struct passage *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->upstreams = u;
	p->target = upstream_target_retain(target);
	p->head_only = q->method == METHOD_HEAD;
	p->share = share;
	p->answered_ms = (uint32_t)io_now(loop_of(p));

	p->upgrades = http && upstream_upgrades(q);
	p->must_change = q->websocket;
	p->complete = q->framing == BODY_NONE;
	if (target->protocol == UPSTREAM_FCGI && !p->complete) p->out.framing = FRAMED_RECORDS;
	if (http && q->framing == BODY_CHUNKED) p->out.framing = FRAMED_CHUNKS;
	p->holds = target->protocol == UPSTREAM_FCGI && q->framing == BODY_CHUNKED;
	p->continues = !http && !p->complete && request_has(q, FIELD_EXPECT) && q->minor >= 1;
	p->gzips = upstreams_compress(u) && upstream_gzip_wanted(q) && !p->upgrades;
	p->repeatable = p->complete && is_idempotent(q->method_name) && !p->upgrades;
	size_t length = write_head(head, target->protocol, r);
	if (!begin_records(p, target->protocol) || !outgoing_begin(&p->out, (struct slice){.at = head, .length = length})) {
		passage_free(p);
		return NULL;
	}
	use(p, false, 0);
	return p;
}

void passage_on_ready(struct passage *p, void (*ready)(void *), void *owner) {
	p->ready = ready;
	p->owner = owner;
}

static void free_input(struct passage *p) {
	if (p->share) p->share->held -= p->in.size;
	free(p->in.bytes);
	p->in.bytes = NULL;
	p->in.at = p->in.length = p->in.size = 0;
}

/* --- compressing --- */

static void free_gzip(struct passage *p) {
	if (p->gzip && p->share) p->share->held -= GZIP_WRITER;
	gzip_writer_free(p->gzip);
	p->gzip = NULL;
}

/* Begins, if there is memory. A client's share is for other responses, too: writers take half of it at most. */
static bool begin_gzip(struct passage *p) {
	if (p->share && p->share->held + GZIP_WRITER > p->share->most / 2) return false;
	p->gzip = gzip_writer_new();
	if (p->gzip && p->share) p->share->held += GZIP_WRITER;
	return p->gzip;
}

/* Has the response whose head has come compressed if it suits. The answer to a HEAD says the same. */
static void offer_gzip(struct passage *p, char *lines) {
	static _Thread_local char changed[UPSTREAM_LINES_MAX];
	const struct slice before = {.at = lines, .length = p->head.lines};
	const bool wanted = p->gzips;
	p->gzips = false;
	if (!upstream_gzip_suits(&p->head, before)) return;
	const bool compressed = wanted && (p->head_only || begin_gzip(p));
	p->head.lines = upstream_gzip_lines(before, compressed, changed);
	memcpy(lines, changed, p->head.lines);
	if (p->gzip && !p->head.until_close) p->head.framing = BODY_CHUNKED;
}

/* --- the response --- */

/* Looks for the head of a response in what has come. */
static void parse_head(struct passage *p) {
	static _Thread_local char lines[UPSTREAM_LINES_MAX];
	int used = (p->target->protocol == UPSTREAM_HTTP ? upstream_response_parse : upstream_cgi_response_parse)(
		&p->head, p->in.bytes + p->in.at, p->in.length - p->in.at, p->head_only, lines);
	if (used == 0) return;
	bool changes = used > 0 && p->head.status == 101;
	bool interim = used > 0 && p->head.status < 200 && !changes;
	if (used > 0 && !interim && !changes) {
		body_start_any(&p->body, p->head.framing, p->head.content_length);
		if (upstreams_compress(p->upstreams)) offer_gzip(p, lines);
	}
	if (used > 0 && p->must_change && p->head.status >= 200 && p->head.status < 300) used = -1;
	if (used < 0 || (changes && !p->upgrades) || (interim && ++p->interims > PASSAGE_INTERIM_MAX) ||
		!(p->lines = malloc(p->head.lines + 1))) {
		blame(p, 502, "has sent what is no response");
		return;
	}
	memcpy(p->lines, lines, p->head.lines);
	p->in.at += (size_t)used;
	p->state = PASSAGE_HEAD;
	if (!interim) {
		p->answered_ms = (uint32_t)io_now(loop_of(p)) - p->answered_ms;
		upstreams_note_response(p->link, p->head.status, p->answered_ms);
	}
}

const struct upstream_response *passage_head(const struct passage *p, struct slice *lines) {
	*lines = (struct slice){.at = p->lines, .length = p->head.lines};
	return &p->head;
}

/* Goes on behind what the owner has taken. */
static void go_on(struct passage *p) {
	bool used_up = p->in.at == p->in.length, reads = used_up || p->state == PASSAGE_WAITS,
		 open_end = p->head.until_close || p->state == PASSAGE_TUNNEL;
	if (used_up) free_input(p);
	if (p->state == PASSAGE_FAILED) return;
	if (p->state == PASSAGE_CONTENT && !open_end && !body_pending(&p->body)) {
		p->state = PASSAGE_ENDED;
	} else if (used_up && p->upstream_ended) {
		if (open_end) p->state = PASSAGE_ENDED;
		else blame(p, 502, cut_short);
	} else if (reads && p->link && io_wantread(loop_of(p), p->link->fd) == -1) {
		fail(p, 503);
	}
}

void passage_take_head(struct passage *p) {
	bool changes = p->head.status == 101, interim = p->head.status < 200 && !changes;
	free(p->lines);
	p->lines = NULL;
	p->head.lines = 0;
	p->state = changes ? PASSAGE_TUNNEL : interim ? PASSAGE_WAITS : PASSAGE_CONTENT;
	if (changes) p->complete = false;
	if (p->link) set_deadline(p);
	if (interim && p->in.at < p->in.length) parse_head(p);
	if (interim && p->state == PASSAGE_WAITS && p->upstream_ended) blame(p, 502, cut_short);
	else if (p->state != PASSAGE_HEAD && p->state != PASSAGE_FAILED) go_on(p);
}

/* Keeps bytes of the trailer section; at its end, only the fields that are passed on. */
static void keep_trailers(struct passage *p, struct slice bytes) {
	static _Thread_local char lines[UPSTREAM_TRAILERS_MAX];
	char *kept = realloc(p->lines, p->head.lines + bytes.length + FIELDS_MAX);
	if (!kept) {
		fail(p, 503);
		return;
	}
	p->lines = kept;
	(void)text_copy(kept + p->head.lines, bytes);
	p->head.lines += bytes.length;
	if (body_pending(&p->body)) return;
	p->head.lines = upstream_trailers((struct slice){.at = kept, .length = p->head.lines}, lines);
	memcpy(kept, lines, p->head.lines);
}

struct slice passage_trailers(const struct passage *p) {
	return (struct slice){.at = p->lines, .length = p->head.lines};
}

/* Returns the next piece as it comes from the upstream, which stays until p->piece is empty. */
static struct slice next_piece(struct passage *p) {
	while (!p->piece.length && p->in.at < p->in.length && p->state != PASSAGE_ENDED && p->state != PASSAGE_FAILED) {
		const char *at = p->in.bytes + p->in.at;
		size_t length = p->in.length - p->in.at;
		if (p->state == PASSAGE_TUNNEL || p->head.until_close) {
			p->piece = (struct slice){.at = at, .length = length};
			p->in.at = p->in.length;
			break;
		}
		const bool in_trailers = body_in_trailers(&p->body);
		int n = body_read(&p->body, at, length, &p->piece);
		if (n < 0) {
			blame(p, 502, "has sent malformed chunks");
			break;
		}
		if (in_trailers) keep_trailers(p, (struct slice){.at = at, .length = (size_t)n});
		p->in.at += (size_t)n;
		if (!p->piece.length && p->state != PASSAGE_FAILED) go_on(p);
	}
	return p->piece;
}

struct slice passage_content(struct passage *p) {
	struct slice made = {0};
	if (!p->gzip) return next_piece(p);
	for (bool any = true; any && !made.length;) {
		any = next_piece(p).length;
		made = gzip_writer_put(p->gzip, &p->piece, any ? GZIP_MORE : p->state == PASSAGE_ENDED ? GZIP_END : GZIP_FLUSH);
		if (any && !p->piece.length) go_on(p);
	}
	return made;
}

void passage_take(struct passage *p) {
	if (p->gzip) {
		if (gzip_writer_taken(p->gzip)) free_gzip(p);
		return;
	}
	p->piece.length = 0;
	go_on(p);
}

/* Takes what has come out of its records. Returns its length, which may be 0; -1: it is malformed. */
static ssize_t unpack(struct passage *p, char *bytes, size_t length) {
	return p->records ? fcgi_read(p->records, bytes, length, complain, p) : (ssize_t)length;
}

static bool is_overloaded(const struct passage *p) {
	return p->records && p->records->ended && fcgi_is_overloaded(p->records);
}

/* --- what the loop reports --- */

/* The upstream sends nothing more. reset: it has not ended its side, but lost the connection. */
static void ended(struct passage *p, bool reset) {
	if (p->state <= PASSAGE_WAITS && repeat(p)) return;
	reset |= p->records && !p->records->ended;
	if (p->state <= PASSAGE_WAITS && is_overloaded(p)) {
		fail(p, 503);
		return;
	}
	if (p->state <= PASSAGE_WAITS || (reset && p->state != PASSAGE_TUNNEL && p->state != PASSAGE_ENDED)) {
		blame(p, 502, cut_short);
		return;
	}
	p->upstream_ended = true;
	io_dontwantread(loop_of(p), p->link->fd);
	if (p->state == PASSAGE_CONTENT || p->state == PASSAGE_TUNNEL) go_on(p);
}

/* Returns whether it has to wait until other passages hold less. */
static bool starves(struct passage *p) {
	p->starved = p->share && !p->in.bytes && p->share->held + PASSAGE_SMALL > p->share->most;
	if (!p->starved) return false;
	p->share->starved = true;
	io_dontwantread(loop_of(p), p->link->fd);
	return true;
}

void passage_feed(struct passage *p) {
	if (!p->starved || !p->link || starves(p)) return;
	if (io_wantread(loop_of(p), p->link->fd) == -1) fail(p, 503);
}

/* Makes room for what comes; only a head needs more than there was at first. false: ENOMEM. */
static bool reserve_input(struct passage *p) {
	size_t size = p->share || p->gzips || p->gzip ? PASSAGE_SMALL : PASSAGE_BUFFER;
	if (p->in.bytes && p->in.length - p->in.at == p->in.size) size = UPSTREAM_HEAD_MAX;
	if (p->in.bytes && size <= p->in.size) return true;
	char *bytes = realloc(p->in.bytes, size);
	if (!bytes) return false;
	if (p->share) p->share->held += size - p->in.size;
	p->in.bytes = bytes;
	p->in.size = size;
	return true;
}

void passage_readable(struct passage *p) {
	if (p->state == PASSAGE_CONNECTS) { /* what it is, passage_writable() finds out */
		io_dontwantread(loop_of(p), p->link->fd);
		return;
	}
	if (p->state >= PASSAGE_HEAD && p->in.length) { /* the owner has not taken that yet */
		io_dontwantread(loop_of(p), p->link->fd);
		return;
	}
	if (starves(p)) return;
	ssize_t n = -1;
	bool has_room = reserve_input(p);
	if (has_room) {
		p->in.length -= p->in.at; /* of interim responses: the rest of them is used up */
		memmove(p->in.bytes, p->in.bytes + p->in.at, p->in.length);
		p->in.at = 0;
		n = io_tryread(loop_of(p), p->link->fd, p->in.bytes + p->in.length, p->in.size - p->in.length);
		if (n == -1 && errno == EAGAIN) {
			if (!p->in.length) free_input(p);
			return;
		}
	}
	if (!has_room) {
		fail(p, 503);
	} else if (n <= 0) {
		ended(p, n == -1 || p->unwanted);
	} else if ((n = unpack(p, p->in.bytes + p->in.length, (size_t)n)) == -1) {
		blame(p, 502, "has sent malformed records");
	} else {
		p->in.length += (size_t)n;
		p->repeatable = false;
		set_deadline(p);
		if (p->state == PASSAGE_WAITS) parse_head(p);
		if (p->records && p->records->ended && p->link) ended(p, false);
		if (!p->in.length) free_input(p);
	}
	p->ready(p->owner);
}

void passage_writable(struct passage *p) {
	if (p->state == PASSAGE_CONNECTS) {
		const int error = try_connection(p);
		if (error == EAGAIN) return;
		if (error) connect_elsewhere(p, error);
		else if (p->link && io_wantread(loop_of(p), p->link->fd) == -1) fail(p, 503);
	} else {
		p->blocked = false;
		passage_flush(p);
	}
	p->ready(p->owner);
}

void passage_timed_out(struct passage *p) {
	bool client_is_slow = p->starved || (p->in.length && p->state > PASSAGE_WAITS) || p->state == PASSAGE_HEAD ||
						  p->state == PASSAGE_ENDED ||
						  (p->state <= PASSAGE_WAITS && !p->complete && (!unsent(p) || p->holds));
	if (p->state == PASSAGE_CONNECTS) {
		connect_elsewhere(p, ETIMEDOUT);
	} else if (client_is_slow && p->state != PASSAGE_TUNNEL) {
		set_deadline(p); /* which has its own */
		return;
	} else {
		blame(p, 504, "has not gone on for a minute");
	}
	p->ready(p->owner);
}

void passage_free(struct passage *p) {
	if (!p) return;
	const bool whole = p->state == PASSAGE_ENDED && p->complete && !unsent(p) && !p->unwanted &&
					   p->in.at == p->in.length && !p->head.until_close && !p->upgrades;
	const bool kept = whole && p->head.keep_alive && !p->upstream_ended;
	if (p->link && p->records) fcgi_finish(p->records, complain, p);
	/* content of a request may not have arrived, although there is a response */
	const enum link_end end = kept ? LINK_KEPT : whole && !p->held ? LINK_DONE : LINK_BROKEN;
	if (p->link) upstreams_return(p->upstreams, p->link, end);
	outgoing_forget(&p->out);
	free_input(p);
	free_gzip(p);
	upstream_target_release(p->target);
	free(p->records);
	free(p->lines);
	free(p);
}
