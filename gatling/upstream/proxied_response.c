/* proxied_response.c - see proxied_state.h: reads the response from the upstream. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/upstream/proxied_state.h"
#include "gatling/upstream/upstream_coding.h"

enum { SPLICE_LEAST = 16 * 1024 }; /* bytes; to copy fewer is faster */

static const char cut_short[] = "has ended a connection without a whole response";

static void free_input(struct proxied *p) {
	if (p->share) p->share->held -= p->in.size;
	/* any buffer of this size can be lent */
	if (p->in.size == PROXIED_BUFFER) upstreams_return_buffer(p->upstreams, p->in.bytes);
	else free(p->in.bytes);
	p->in.bytes = NULL;
	p->in.at = p->in.length = p->in.size = 0;
}

/* --- compressing --- */

static void return_writer(struct proxied *p) {
	if (!p->writer) return;
	if (p->share) p->share->held -= p->writer->codec->memory;
	upstream_writers_return(upstreams_writers(p->upstreams), p->writer);
	p->writer = NULL;
}

void proxied_drop_response(struct proxied *p) {
	free_input(p);
	return_writer(p);
}

/* Begins to compress the response. Returns false if there is no memory for it. */
static bool begin_writer(struct proxied *p, enum coding coding, bool lasts) {
	const size_t most = PROXIED_WRITERS / (lasts ? PROXIED_WRITERS_LASTING : 1);
	p->writer = upstream_writers_take(upstreams_writers(p->upstreams), coding, lasts);
	if (p->writer && p->share) p->share->held += p->writer->codec->memory;
	if (p->share && p->share->held > most) return_writer(p);
	return p->writer;
}

/* Has the response, whose head has come, compressed if it is suitable. The heads for a HEAD and of a 304 are changed in
 * the same way. */
static void offer_coding(struct proxied *p, char *lines) {
	char *const changed = WORKSPACE(UPSTREAM_LINES_MAX);
	const struct slice before = {.at = lines, .length = p->head.lines};
	enum coding coding = p->coding;
	p->coding = CODING_IDENTITY;
	if (!upstream_coding_suits(&p->head, before)) return;
	const bool coded = p->head_only || p->head.status == 304; /* as the answer would be that it stands for */
	if (coding != CODING_IDENTITY && !coded && !begin_writer(p, coding, upstream_coding_lasts(before)))
		coding = CODING_IDENTITY;
	p->head.lines = upstream_coding_lines(&p->head, before, coding, changed);
	memcpy(lines, changed, p->head.lines);
	if (p->writer && !p->head.until_close) p->head.framing = BODY_CHUNKED;
}

/* --- the response --- */

/* Returns whether the head of a 101 changes the protocol to WebSocket and nothing else (RFC 9110, section 7.8). */
static bool begins_websocket(struct slice head) {
	bool begins = false;
	slice_drop(&head, slice_until(head, '\n') + 1);
	for (struct upstream_field f; upstream_next_field(&head, &f);) {
		if (!slice_equal_nocase(f.name, SLICE("upgrade"))) continue;
		if (!slice_equal_nocase(f.value, SLICE("websocket"))) return false;
		begins = true;
	}
	return begins;
}

/* Parses the head of a response, if all of it has come. */
static void parse_head(struct proxied *p) {
	char *const lines = WORKSPACE(UPSTREAM_LINES_MAX);
	const struct slice come = {.at = p->in.bytes + p->in.at, .length = p->in.length - p->in.at};
	int used = (p->target->protocol == UPSTREAM_HTTP ? upstream_response_parse : upstream_cgi_response_parse)(
		&p->head, come.at, come.length, p->head_only, lines);
	if (used == 0) return;
	bool changes = used > 0 && p->head.status == 101;
	bool interim = used > 0 && p->head.status < 200 && !changes;
	if (used > 0 && !interim && !changes) {
		body_start_any(&p->body, p->head.framing, p->head.content_length);
		p->link->had_much = p->head.framing == BODY_LENGTH && p->head.content_length > PROXIED_BUFFER;
		if (p->compresses) offer_coding(p, lines);
	}
	if (used > 0 && p->must_change && p->head.status >= 200 && p->head.status < 300) used = -1;
	if (changes && !(p->upgrades && begins_websocket(slice_first(come, (size_t)used)))) {
		proxied_blame(p, 502, "has changed to a protocol that was not asked for");
		return;
	}
	if (used < 0 || (interim && ++p->interims > PROXIED_INTERIM_MAX)) {
		proxied_blame(p, 502, "sent something that is not a response");
		return;
	}
	if (!(p->lines = malloc(p->head.lines + 1))) {
		proxied_fail(p, 503);
		return;
	}
	memcpy(p->lines, lines, p->head.lines);
	p->in.at += (size_t)used;
	p->state = PROXIED_HEAD;
	if (!interim) {
		p->answered_ms = (uint32_t)io_now(p->loop) - p->answered_ms;
		upstreams_note_response(p->link, p->head.status, p->answered_ms);
	}
}

const struct upstream_response *proxied_head(const struct proxied *p, struct slice *lines) {
	*lines = (struct slice){.at = p->lines, .length = p->head.lines};
	return &p->head;
}

/* Continues after the owner has taken a head or a piece: reads on, or notes the end. */
static void go_on(struct proxied *p) {
	bool used_up = p->in.at == p->in.length, reads = used_up || p->state == PROXIED_WAITS,
		 open_end = p->head.until_close || p->state == PROXIED_TUNNEL;
	if (used_up) free_input(p);
	if (p->state == PROXIED_FAILED) return;
	if (p->state == PROXIED_CONTENT && !open_end && !body_pending(&p->body)) {
		p->state = PROXIED_ENDED;
	} else if (used_up && p->upstream_ended) {
		if (open_end) p->state = PROXIED_ENDED;
		else proxied_blame(p, 502, cut_short);
	} else if (reads && p->link && io_wantread(p->loop, p->link->fd) == -1) {
		proxied_fail(p, 503);
	}
}

void proxied_take_head(struct proxied *p) {
	bool changes = p->head.status == 101, interim = p->head.status < 200 && !changes;
	free(p->lines);
	p->lines = NULL;
	p->head.lines = 0;
	p->state = changes ? PROXIED_TUNNEL : interim ? PROXIED_WAITS : PROXIED_CONTENT;
	if (changes) p->complete = false;
	p->expects &= !interim;
	if (p->link) proxied_note_progress(p);
	if (interim && p->in.at < p->in.length) parse_head(p);
	if (interim && p->state == PROXIED_WAITS && p->upstream_ended) proxied_blame(p, 502, cut_short);
	else if (p->state != PROXIED_HEAD && p->state != PROXIED_FAILED) go_on(p);
}

/* Keeps bytes of the trailer section; at its end, keeps only the fields that are passed on. */
static void keep_trailers(struct proxied *p, struct slice bytes) {
	char lines[UPSTREAM_TRAILERS_MAX];
	char *kept = realloc(p->lines, p->head.lines + bytes.length + FIELDS_MAX);
	if (!kept) {
		proxied_fail(p, 503);
		return;
	}
	p->lines = kept;
	(void)text_copy(kept + p->head.lines, bytes);
	p->head.lines += bytes.length;
	if (body_pending(&p->body)) return;
	p->head.lines = upstream_trailers((struct slice){.at = kept, .length = p->head.lines}, lines);
	memcpy(kept, lines, p->head.lines);
}

struct slice proxied_trailers(const struct proxied *p) {
	return (struct slice){.at = p->lines, .length = p->head.lines};
}

/* Returns the next piece of content as the upstream has sent it. It stays until p->piece is empty. */
static struct slice next_piece(struct proxied *p) {
	while (!p->piece.length && p->in.at < p->in.length && p->state != PROXIED_ENDED && p->state != PROXIED_FAILED) {
		const char *at = p->in.bytes + p->in.at;
		size_t length = p->in.length - p->in.at;
		if (p->state == PROXIED_TUNNEL || p->head.until_close) {
			p->piece = (struct slice){.at = at, .length = length};
			p->in.at = p->in.length;
			break;
		}
		const bool in_trailers = p->head.framing == BODY_CHUNKED && body_in_trailers(&p->body);
		int n = body_read(&p->body, at, length, &p->piece);
		if (n < 0) {
			proxied_blame(p, 502, "has sent malformed chunks");
			break;
		}
		if (in_trailers) keep_trailers(p, (struct slice){.at = at, .length = (size_t)n});
		p->in.at += (size_t)n;
		if (!p->piece.length && p->state != PROXIED_FAILED) go_on(p);
	}
	return p->piece;
}

/* Returns the next piece of content as the owner gets it, or an empty slice if none has come. */
static struct slice next_content(struct proxied *p) {
	struct slice made = {0};
	if (!p->writer) return next_piece(p);
	for (bool any = true; any && !made.length;) {
		any = next_piece(p).length;
		const enum writer_step step = any ? WRITER_MORE : p->state == PROXIED_ENDED ? WRITER_END : WRITER_FLUSH;
		made = writer_put(p->writer, &p->piece, step);
		if (any && !p->piece.length) go_on(p);
	}
	return made;
}

enum proxied_state proxied_next(struct proxied *p, struct slice *piece) {
	while (p->state == PROXIED_CONTENT || p->state == PROXIED_TUNNEL || (p->state == PROXIED_ENDED && p->writer)) {
		const enum proxied_state before = p->state;
		*piece = next_content(p);
		if (piece->length) return PROXIED_CONTENT;
		if (p->state == before) return PROXIED_WAITS;
	}
	return p->state;
}

void proxied_take(struct proxied *p) {
	if (p->link) proxied_note_progress(p);
	if (p->writer) {
		if (writer_taken(p->writer)) return_writer(p);
		return;
	}
	p->piece.length = 0;
	go_on(p);
}

/* Unpacks the records in bytes, if there are any. Returns the length of the content, which may be 0, or -1 if they are
 * malformed. */
static ssize_t unpack(struct proxied *p, char *bytes, size_t length) {
	return p->records ? fcgi_read(p->records, bytes, length, proxied_complain, p) : (ssize_t)length;
}

static bool is_overloaded(const struct proxied *p) {
	return p->records && p->records->ended && fcgi_is_overloaded(p->records);
}

/* --- events --- */

static bool has_said_nothing(const struct proxied *p) {
	return !p->in.length && !p->interims && !(p->records && p->records->ended);
}

/* Handles the end of the upstream's side. reset: it was not closed, but the connection was lost. */
static void ended(struct proxied *p, bool reset) {
	if (p->state <= PROXIED_WAITS && proxied_repeat(p)) return;
	reset |= p->records && !p->records->ended;
	if (p->state <= PROXIED_WAITS && is_overloaded(p)) {
		proxied_blame(p, 503, "has refused: it has too much to do");
		return;
	}
	if (p->state == PROXIED_WAITS && !p->link->reused && has_said_nothing(p)) {
		upstreams_complain(p->link, cut_short);
		proxied_ask_another(p);
		return;
	}
	if (p->state <= PROXIED_WAITS || (reset && p->state != PROXIED_TUNNEL && p->state != PROXIED_ENDED)) {
		proxied_blame(p, 502, cut_short);
		return;
	}
	if (reset && p->state == PROXIED_TUNNEL) {
		proxied_fail(p, 502);
		return;
	}
	p->upstream_ended = true;
	io_dontwantread(p->loop, p->link->fd);
	if (p->state == PROXIED_CONTENT || p->state == PROXIED_TUNNEL) go_on(p);
}

/* Returns how many bytes may be read at a time; 0: the proxied request has to wait until others hold less, or the
 * client takes more. */
static size_t may_read(const struct proxied *p) {
	const struct proxied_share *s = p->share;
	if (!s || p->in.bytes || s->held + PROXIED_SMALL <= s->most / 2) return PROXIED_BUFFER;
	if (s->held + PROXIED_SMALL > s->most) return 0;
	return p->state == PROXIED_CONTENT ? s->room(p->owner) : PROXIED_BUFFER;
}

/* Stops reading if the proxied request has to wait. Returns whether it has to. */
static bool starves(struct proxied *p) {
	p->starved = !may_read(p);
	if (!p->starved) return false;
	p->share->starved = true;
	io_dontwantread(p->loop, p->link->fd);
	return true;
}

void proxied_feed(struct proxied *p) {
	if (!p->starved || !p->link || starves(p)) return;
	if (io_wantread(p->loop, p->link->fd) == -1) proxied_fail(p, 503);
}

/* Makes room for input; only a head needs more room than there was at first. Returns false if memory runs out. */
static bool reserve_input(struct proxied *p) {
	size_t size = p->share || p->coding != CODING_IDENTITY || p->writer ? PROXIED_SMALL : PROXIED_BUFFER;
	if (p->in.bytes && p->in.length - p->in.at == p->in.size) size = UPSTREAM_HEAD_MAX;
	if (p->in.bytes && size <= p->in.size) return true;
	const bool whole = !p->in.bytes && size == PROXIED_BUFFER;
	char *bytes = whole ? upstreams_take_buffer(p->upstreams) : realloc(p->in.bytes, size);
	if (!bytes) return false;
	if (p->share) p->share->held += size - p->in.size;
	p->in.bytes = bytes;
	p->in.size = size;
	return true;
}

/* Reads at most `most` bytes, and no more than there is room for. Returns what io_tryread() returns. */
static ssize_t receive(struct proxied *p, size_t most) {
	const size_t room = p->in.size - p->in.length;
	return upstream_link_read(p->link, p->in.bytes + p->in.length, most < room ? most : room);
}

/* Handles n bytes that have been read. */
static void look_at(struct proxied *p, size_t n) {
	const ssize_t unpacked = unpack(p, p->in.bytes + p->in.length, n);
	if (unpacked == -1) {
		proxied_blame(p, 502, "has sent malformed records");
		return;
	}
	p->in.length += (size_t)unpacked;
	p->repeatable = false;
	if (!outgoing_unsent(&p->out)) outgoing_forget(&p->out);
	if (p->state == PROXIED_WAITS) parse_head(p);
	if (p->records && p->records->ended && p->link) ended(p, false);
	if (!p->in.length) free_input(p);
}

/* Returns whether the rest of the content should be read now, to be sent together with the head: it fits the buffer, or
 * its length is unknown (chunks). */
static bool belongs_together(const struct proxied *p) {
	const size_t content = p->in.length - p->in.at;
	const uint64_t rest = body_rest(&p->body);
	return p->state == PROXIED_HEAD && p->head.status >= 200 && p->in.size >= PROXIED_BUFFER &&
		   p->in.length < p->in.size && !p->upstream_ended && body_pending(&p->body) &&
		   (!rest || (rest > content && rest <= PROXIED_BUFFER));
}

/* Returns whether content can go straight to a socket. */
static bool may_splice(const struct proxied *p) {
	return p->splice_to != -1 && !p->writer && !p->records && upstream_link_splices(p->link);
}

/* Reads from the upstream and handles the input. If much content is expected, which can stay in the kernel, only a
 * little is read with the head. Returns what the first io_tryread() returned, or -1 with ENOMEM. */
static ssize_t read_response(struct proxied *p) {
	const bool expects_much = p->state == PROXIED_WAITS && p->link->had_much && may_splice(p);
	const size_t least = expects_much ? PROXIED_SMALL : PROXIED_BUFFER, may = may_read(p);
	const size_t most = may < least ? may : least;
	if (!reserve_input(p)) {
		errno = ENOMEM;
		return -1;
	}
	p->in.length -= p->in.at; /* bytes of interim responses; those before them are used up */
	memmove(p->in.bytes, p->in.bytes + p->in.at, p->in.length);
	p->in.at = 0;
	const ssize_t n = receive(p, most);
	if (n == -1 && errno == EAGAIN && !p->in.length) free_input(p);
	if (n <= 0) return n;
	look_at(p, (size_t)n);
	if ((size_t)n < most || !belongs_together(p)) return n;
	const ssize_t more = receive(p, PROXIED_BUFFER); /* an end or an error is found again later */
	if (more > 0) look_at(p, (size_t)more);
	return n;
}

void proxied_splice_to(struct proxied *p, int fd) { p->splice_to = fd; }

uint64_t proxied_spliced(struct proxied *p) {
	const uint64_t spliced = p->spliced;
	p->spliced = 0;
	return spliced;
}

/* Returns whether the next content goes straight to a socket, which it does if there is much of it. */
static bool splices(const struct proxied *p) {
	return p->state == PROXIED_CONTENT && body_rest(&p->body) >= SPLICE_LEAST && may_splice(p);
}

/* Returns how many bytes may be moved at a time. For those beyond PROXIED_BUFFER there must be room in the socket. */
static size_t splice_most(const struct proxied *p) {
	_Static_assert(PROXIED_SPLICED == 2 * PROXIED_BUFFER, "");
	const uint64_t rest = body_rest(&p->body);
	if (rest <= PROXIED_BUFFER) return (size_t)rest;
	const size_t room = io_room(p->splice_to), most = PROXIED_BUFFER + (room < PROXIED_BUFFER ? room : PROXIED_BUFFER);
	return rest < most ? (size_t)rest : most;
}

/* Moves content to the socket. Bytes that the socket does not take are held as if they had been read. Returns what
 * io_splice() returns; -1 with ENOMEM means that some are lost. */
static ssize_t splice_content(struct proxied *p) {
	char *const rest = WORKSPACE(PROXIED_SPLICED);
	size_t sent;
	const ssize_t n = io_splice(p->loop, p->link->fd, p->splice_to, rest, splice_most(p), &sent);
	if (n <= 0) return n;
	body_take(&p->body, sent);
	p->spliced += sent;
	const size_t held = (size_t)n - sent;
	if (!held) {
		go_on(p);
		return n;
	}
	if (!(p->in.bytes = malloc(held))) return -1;
	memcpy(p->in.bytes, rest, held);
	p->in.length = p->in.size = held;
	return n;
}

void proxied_readable(struct proxied *p) {
	if (p->state == PROXIED_CONNECTS && p->link->tls) {
		proxied_go_on_connecting(p);
		return;
	}
	if (p->state == PROXIED_CONNECTS) { /* proxied_writable() finds out why */
		io_dontwantread(p->loop, p->link->fd);
		return;
	}
	if (p->state >= PROXIED_HEAD && p->in.length) { /* the owner has not taken it yet */
		io_dontwantread(p->loop, p->link->fd);
		return;
	}
	if (starves(p)) return;
	const bool straight = splices(p), writes = p->blocked && upstream_link_needs_input(p->link);
	const ssize_t n = straight ? splice_content(p) : read_response(p);
	const int error = n == -1 ? errno : 0;
	if (writes && p->link && (n > 0 || error == EAGAIN)) {
		p->blocked = false;
		proxied_flush(p);
	}
	if (error == EAGAIN) return;
	if (error == ENOMEM) proxied_fail(p, 503);
	else if (n <= 0) ended(p, n == -1 || p->unwanted);
	if (n > 0 && p->link) proxied_note_progress(p);
	p->ready(p->owner);
}
