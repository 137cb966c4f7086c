/* passage_response.c - see passage_state.h: reads the response from the upstream. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/base/gzip.h"
#include "gatling/base/text.h"
#include "gatling/base/workspace.h"
#include "gatling/upstream/passage_state.h"
#include "gatling/upstream/upstream_gzip.h"

enum { RELAY_LEAST = 16 * 1024 }; /* bytes; to copy fewer is faster */

static const char cut_short[] = "has ended a connection without a whole response";

void passage_free_input(struct passage *p) {
	if (p->share) p->share->held -= p->in.size;
	/* any buffer of this size can be lent */
	if (p->in.size == PASSAGE_BUFFER) upstreams_return_buffer(p->upstreams, p->in.bytes);
	else free(p->in.bytes);
	p->in.bytes = NULL;
	p->in.at = p->in.length = p->in.size = 0;
}

/* --- compressing --- */

void passage_free_gzip(struct passage *p) {
	if (p->gzip && p->share) p->share->held -= GZIP_WRITER;
	gzip_writer_free(p->gzip);
	p->gzip = NULL;
}

/* Begins to compress the response. Returns false if there is no memory for it. Writers take at most half of a client's
 * share, which is for other responses, too. */
static bool begin_gzip(struct passage *p) {
	if (p->share && p->share->held + GZIP_WRITER > p->share->most / 2) return false;
	p->gzip = gzip_writer_new();
	if (p->gzip && p->share) p->share->held += GZIP_WRITER;
	return p->gzip;
}

/* Has the response, whose head has come, compressed if it is suitable. The heads for a HEAD and of a 304 are changed in
 * the same way. */
static void offer_gzip(struct passage *p, char *lines) {
	char *const changed = WORKSPACE(UPSTREAM_LINES_MAX);
	const struct slice before = {.at = lines, .length = p->head.lines};
	const bool wanted = p->gzips;
	p->gzips = false;
	if (!upstream_gzip_suits(&p->head, before)) return;
	const bool compressed = wanted && (p->head_only || p->head.status == 304 || begin_gzip(p));
	p->head.lines = upstream_gzip_lines(&p->head, before, compressed, changed);
	memcpy(lines, changed, p->head.lines);
	if (p->gzip && !p->head.until_close) p->head.framing = BODY_CHUNKED;
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
static void parse_head(struct passage *p) {
	char *const lines = WORKSPACE(UPSTREAM_LINES_MAX);
	const struct slice come = {.at = p->in.bytes + p->in.at, .length = p->in.length - p->in.at};
	int used = (p->target->protocol == UPSTREAM_HTTP ? upstream_response_parse : upstream_cgi_response_parse)(
		&p->head, come.at, come.length, p->head_only, lines);
	if (used == 0) return;
	bool changes = used > 0 && p->head.status == 101;
	bool interim = used > 0 && p->head.status < 200 && !changes;
	if (used > 0 && !interim && !changes) {
		body_start_any(&p->body, p->head.framing, p->head.content_length);
		p->link->had_much = body_rest(&p->body) > PASSAGE_BUFFER;
		if (upstreams_compress(p->upstreams)) offer_gzip(p, lines);
	}
	if (used > 0 && p->must_change && p->head.status >= 200 && p->head.status < 300) used = -1;
	if (changes && !(p->upgrades && begins_websocket(slice_first(come, (size_t)used)))) {
		passage_blame(p, 502, "has changed to a protocol that was not asked for");
		return;
	}
	if (used < 0 || (interim && ++p->interims > PASSAGE_INTERIM_MAX)) {
		passage_blame(p, 502, "sent something that is not a response");
		return;
	}
	if (!(p->lines = malloc(p->head.lines + 1))) {
		passage_fail(p, 503);
		return;
	}
	memcpy(p->lines, lines, p->head.lines);
	p->in.at += (size_t)used;
	p->state = PASSAGE_HEAD;
	if (!interim) {
		p->answered_ms = (uint32_t)io_now(passage_loop(p)) - p->answered_ms;
		upstreams_note_response(p->link, p->head.status, p->answered_ms);
	}
}

const struct upstream_response *passage_head(const struct passage *p, struct slice *lines) {
	*lines = (struct slice){.at = p->lines, .length = p->head.lines};
	return &p->head;
}

/* Continues after the owner has taken a head or a piece: reads on, or notes the end. */
static void go_on(struct passage *p) {
	bool used_up = p->in.at == p->in.length, reads = used_up || p->state == PASSAGE_WAITS,
		 open_end = p->head.until_close || p->state == PASSAGE_TUNNEL;
	if (used_up) passage_free_input(p);
	if (p->state == PASSAGE_FAILED) return;
	if (p->state == PASSAGE_CONTENT && !open_end && !body_pending(&p->body)) {
		p->state = PASSAGE_ENDED;
	} else if (used_up && p->upstream_ended) {
		if (open_end) p->state = PASSAGE_ENDED;
		else passage_blame(p, 502, cut_short);
	} else if (reads && p->link && io_wantread(passage_loop(p), p->link->fd) == -1) {
		passage_fail(p, 503);
	}
}

void passage_take_head(struct passage *p) {
	bool changes = p->head.status == 101, interim = p->head.status < 200 && !changes;
	free(p->lines);
	p->lines = NULL;
	p->head.lines = 0;
	p->state = changes ? PASSAGE_TUNNEL : interim ? PASSAGE_WAITS : PASSAGE_CONTENT;
	if (changes) p->complete = false;
	p->expects &= !interim;
	if (p->link) passage_note_progress(p);
	if (interim && p->in.at < p->in.length) parse_head(p);
	if (interim && p->state == PASSAGE_WAITS && p->upstream_ended) passage_blame(p, 502, cut_short);
	else if (p->state != PASSAGE_HEAD && p->state != PASSAGE_FAILED) go_on(p);
}

/* Keeps bytes of the trailer section; at its end, keeps only the fields that are passed on. */
static void keep_trailers(struct passage *p, struct slice bytes) {
	char *const lines = WORKSPACE(UPSTREAM_TRAILERS_MAX);
	char *kept = realloc(p->lines, p->head.lines + bytes.length + FIELDS_MAX);
	if (!kept) {
		passage_fail(p, 503);
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

/* Returns the next piece of content as the upstream has sent it. It stays until p->piece is empty. */
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
			passage_blame(p, 502, "has sent malformed chunks");
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
	if (p->link) passage_note_progress(p);
	if (p->gzip) {
		if (gzip_writer_taken(p->gzip)) passage_free_gzip(p);
		return;
	}
	p->piece.length = 0;
	go_on(p);
}

/* Unpacks the records in bytes, if there are any. Returns the length of the content, which may be 0, or -1 if they are
 * malformed. */
static ssize_t unpack(struct passage *p, char *bytes, size_t length) {
	return p->records ? fcgi_read(p->records, bytes, length, passage_complain, p) : (ssize_t)length;
}

static bool is_overloaded(const struct passage *p) {
	return p->records && p->records->ended && fcgi_is_overloaded(p->records);
}

/* --- events --- */

static bool has_said_nothing(const struct passage *p) {
	return !p->in.length && !p->interims && !(p->records && p->records->ended);
}

/* Handles the end of the upstream's side. reset: it was not closed, but the connection was lost. */
static void ended(struct passage *p, bool reset) {
	if (p->state <= PASSAGE_WAITS && passage_repeat(p)) return;
	reset |= p->records && !p->records->ended;
	if (p->state <= PASSAGE_WAITS && is_overloaded(p)) {
		passage_blame(p, 503, "has refused: it has too much to do");
		return;
	}
	if (p->state == PASSAGE_WAITS && !p->link->reused && has_said_nothing(p)) {
		upstreams_complain(p->link, cut_short);
		passage_ask_another(p);
		return;
	}
	if (p->state <= PASSAGE_WAITS || (reset && p->state != PASSAGE_TUNNEL && p->state != PASSAGE_ENDED)) {
		passage_blame(p, 502, cut_short);
		return;
	}
	p->upstream_ended = true;
	io_dontwantread(passage_loop(p), p->link->fd);
	if (p->state == PASSAGE_CONTENT || p->state == PASSAGE_TUNNEL) go_on(p);
}

/* Stops reading if the passage has to wait until others hold less. Returns whether it has to. */
static bool starves(struct passage *p) {
	p->starved = p->share && !p->in.bytes && p->share->held + PASSAGE_SMALL > p->share->most;
	if (!p->starved) return false;
	p->share->starved = true;
	io_dontwantread(passage_loop(p), p->link->fd);
	return true;
}

void passage_feed(struct passage *p) {
	if (!p->starved || !p->link || starves(p)) return;
	if (io_wantread(passage_loop(p), p->link->fd) == -1) passage_fail(p, 503);
}

/* Makes room for input; only a head needs more room than there was at first. Returns false if memory runs out. */
static bool reserve_input(struct passage *p) {
	size_t size = p->share || p->gzips || p->gzip ? PASSAGE_SMALL : PASSAGE_BUFFER;
	if (p->in.bytes && p->in.length - p->in.at == p->in.size) size = UPSTREAM_HEAD_MAX;
	if (p->in.bytes && size <= p->in.size) return true;
	const bool whole = !p->in.bytes && size == PASSAGE_BUFFER;
	char *bytes = whole ? upstreams_take_buffer(p->upstreams) : realloc(p->in.bytes, size);
	if (!bytes) return false;
	if (p->share) p->share->held += size - p->in.size;
	p->in.bytes = bytes;
	p->in.size = size;
	return true;
}

/* Reads at most `most` bytes, and no more than there is room for. Returns what io_tryread() returns. */
static ssize_t receive(struct passage *p, size_t most) {
	const size_t room = p->in.size - p->in.length;
	return io_tryread(passage_loop(p), p->link->fd, p->in.bytes + p->in.length, most < room ? most : room);
}

/* Handles n bytes that have been read. */
static void look_at(struct passage *p, size_t n) {
	const ssize_t unpacked = unpack(p, p->in.bytes + p->in.length, n);
	if (unpacked == -1) {
		passage_blame(p, 502, "has sent malformed records");
		return;
	}
	p->in.length += (size_t)unpacked;
	p->repeatable = false;
	if (p->state == PASSAGE_WAITS) parse_head(p);
	if (p->records && p->records->ended && p->link) ended(p, false);
	if (!p->in.length) passage_free_input(p);
}

/* Returns whether the rest of the content should be read now, to be sent together with the head: it fits the buffer, or
 * its length is unknown (chunks). */
static bool belongs_together(const struct passage *p) {
	const size_t content = p->in.length - p->in.at;
	const uint64_t rest = body_rest(&p->body);
	return p->state == PASSAGE_HEAD && p->head.status >= 200 && p->in.size >= PASSAGE_BUFFER &&
		   p->in.length < p->in.size && !p->upstream_ended && body_pending(&p->body) &&
		   (!rest || (rest > content && rest <= PASSAGE_BUFFER));
}

/* Returns whether content can go straight to a socket. */
static bool may_relay(const struct passage *p) {
	return p->relay_to != -1 && !p->gzip && !p->records && io_relays(passage_loop(p));
}

/* Reads from the upstream and handles the input. If much content is expected, which can stay in the kernel, only a
 * little is read with the head. Returns what the first io_tryread() returned, or -1 with ENOMEM. */
static ssize_t read_response(struct passage *p) {
	const bool expects_much = p->state == PASSAGE_WAITS && p->link->had_much && may_relay(p);
	const size_t most = expects_much ? PASSAGE_SMALL : PASSAGE_BUFFER;
	if (!reserve_input(p)) {
		errno = ENOMEM;
		return -1;
	}
	p->in.length -= p->in.at; /* bytes of interim responses; those before them are used up */
	memmove(p->in.bytes, p->in.bytes + p->in.at, p->in.length);
	p->in.at = 0;
	const ssize_t n = receive(p, most);
	if (n == -1 && errno == EAGAIN && !p->in.length) passage_free_input(p);
	if (n <= 0) return n;
	look_at(p, (size_t)n);
	if ((size_t)n < most || !belongs_together(p)) return n;
	const ssize_t more = receive(p, PASSAGE_BUFFER); /* an end or an error is found again later */
	if (more > 0) look_at(p, (size_t)more);
	return n;
}

void passage_relay(struct passage *p, int fd) { p->relay_to = fd; }

uint64_t passage_relayed(struct passage *p) {
	const uint64_t relayed = p->relayed;
	p->relayed = 0;
	return relayed;
}

/* Returns whether the next content goes straight to a socket, which it does if there is much of it. */
static bool relays(const struct passage *p) {
	return p->state == PASSAGE_CONTENT && body_rest(&p->body) >= RELAY_LEAST && may_relay(p);
}

/* Returns how many bytes may be moved at a time. For those beyond PASSAGE_BUFFER there must be room in the socket. */
static size_t relay_most(const struct passage *p) {
	_Static_assert(PASSAGE_RELAYED == 2 * PASSAGE_BUFFER, "");
	const uint64_t rest = body_rest(&p->body);
	if (rest <= PASSAGE_BUFFER) return (size_t)rest;
	const size_t room = io_room(p->relay_to), most = PASSAGE_BUFFER + (room < PASSAGE_BUFFER ? room : PASSAGE_BUFFER);
	return rest < most ? (size_t)rest : most;
}

/* Moves content to the socket. Bytes that the socket does not take are held as if they had been read. Returns what
 * io_relay() returns; -1 with ENOMEM means that some are lost. */
static ssize_t relay(struct passage *p) {
	char *const rest = WORKSPACE(PASSAGE_RELAYED);
	size_t sent;
	const ssize_t n = io_relay(passage_loop(p), p->link->fd, p->relay_to, rest, relay_most(p), &sent);
	if (n <= 0) return n;
	body_take(&p->body, sent);
	p->relayed += sent;
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

void passage_readable(struct passage *p) {
	if (p->state == PASSAGE_CONNECTS) { /* passage_writable() finds out why */
		io_dontwantread(passage_loop(p), p->link->fd);
		return;
	}
	if (p->state >= PASSAGE_HEAD && p->in.length) { /* the owner has not taken it yet */
		io_dontwantread(passage_loop(p), p->link->fd);
		return;
	}
	if (starves(p)) return;
	const bool straight = relays(p);
	const ssize_t n = straight ? relay(p) : read_response(p);
	if (n == -1 && errno == EAGAIN) return;
	if (n == -1 && errno == ENOMEM) passage_fail(p, 503);
	else if (n <= 0) ended(p, n == -1 || p->unwanted);
	if (n > 0 && p->link) passage_note_progress(p);
	p->ready(p->owner);
}
