/* fuzz_http3.c - whatever comes on the streams of an HTTP/3 session, in whatever order they are opened, reset, sent,
 * acknowledged and closed, it counts what it holds, lets the client send again what it has used, and keeps nothing at
 * the end; and the result is the same however the bytes are divided. For libFuzzer: clang
 * -fsanitize=fuzzer,address,undefined. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gatling/exchange/response_batch.h"
#include "gatling/http3/http3.h"
#include "gatling/http3/session.h"
#include "tests/fuzz/site.h"

enum { STREAMS = 8, LONG_PIECE = 64, SENT_MAX = 1 << 20, WAIT_MS = 5000 };

/* What the transport knows of a stream. */
struct known {
	struct http3_stream *stream; /* NULL: it is closed */
	int64_t id;
	bool ended;                  /* nothing more comes */
	bool took_end;               /* the server has ended its side, or reset it */
	uint64_t received, consumed; /* bytes */
	uint64_t sent, acknowledged; /* bytes of the server */
};

static struct session {
	struct http3 *http3;
	struct known known[STREAMS];
	unsigned streams;
	int64_t next_bidi, next_uni;
	enum http3_error error;
	bool pending;  /* http3_received() has to be called */
	uint64_t hash; /* of all that it has done */
} session;

static io_loop *loop;
static struct site_context site;
static struct batch_pool batches;
static struct exchange_context exchanges;
static struct http3_context context;
static int fd; /* stands for the socket */

/* --- what the session asks of the transport --- */

/* Notes something that the session has done (FNV-1a). */
static void note(const void *bytes, size_t length) {
	const unsigned char *p = bytes;
	for (size_t i = 0; i < length; i++) session.hash = (session.hash ^ p[i]) * UINT64_C(0x100000001b3);
}

static void note_number(uint64_t n) { note(&n, sizeof n); }

static struct known *known_of(int64_t id) {
	for (unsigned i = 0; i < session.streams; i++)
		if (session.known[i].id == id) return &session.known[i];
	abort();
}

static void ignore(void *connection) { (void)connection; }

static void consumed(void *connection, int64_t id, uint64_t n) {
	struct known *k = known_of(id);
	(void)connection;
	k->consumed += n;
	require(k->consumed <= k->received);
}

static void reset(void *connection, int64_t id, enum http3_error error) {
	(void)connection;
	known_of(id)->took_end = true;
	note_number((uint64_t)id << 16 | error);
}

static void stop(void *connection, int64_t id, enum http3_error error) {
	(void)connection;
	note_number((uint64_t)known_of(id)->id << 32 | error);
}

static int reader(void *connection) {
	(void)connection;
	return fd;
}

static const struct http3_transport transport = {.connection = {.send = ignore, .close = ignore},
												 .consumed = consumed,
												 .reset = reset,
												 .stop = stop,
												 .reader = reader};

/* --- the site --- */

static void set_up(void) {
	static const struct site_options options = {.cache = 1 << 20, .cache_control = true};
	int end[2];
	const int root = site_make();
	loop = io_loop_new();
	batches = (struct batch_pool){.now_ns = &site.now_ns};
	exchanges = (struct exchange_context){.site = &site, .batches = &batches};
	context = (struct http3_context){.exchanges = &exchanges, .loop = loop, .memory_max = 512 * 1024};
	context.decoder = field_decoder_new();
	context.common_block = SLICE("\x5f\x4d\x01g"); /* server: g */
	require(loop && context.decoder);
	require(site_context_open(&site, loop, root, NULL, &options, 1, 10, 20) == 0);
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end) == 0 && io_fd(loop, end[0], &loop) == 0);
	fd = end[0];
}

/* Waits for threads that find and read files, so that the result does not depend on them. */
static void finish_work(void) {
	struct streams *t = http3_streams(session.http3);
	for (int i = 0; site_context_jobs(&site) || t->postpones; i++) {
		require(i < WAIT_MS && io_wait(loop, 1) == 0);
		if (t->postpones && !io_reading(loop, fd)) streams_go_on(t);
		site_context_collect(&site);
	}
}

/* --- what must always be true --- */

static void check(void) {
	const struct http3 *h = session.http3;
	uint64_t unacknowledged = 0, held = 0, lent = 0;
	size_t payloads = 0, streams = 0;
	for (const struct http3_stream *q = h->all; q; q = q->next) {
		for (const struct http3_chunk *c = q->first; c; c = c->next) unacknowledged += c->length;
		payloads += q->payload_room;
		held += q->stream ? stream_held(q->stream) : 0;
	}
	for (const struct stream *s = h->streams.first; s; s = s->next) streams += s->account.memory;
	require(h->unacknowledged == unacknowledged && h->received == payloads && h->streams.memory == streams);
	if (session.pending) return;
	for (unsigned i = 0; i < session.streams; i++) lent += session.known[i].received - session.known[i].consumed;
	require(lent == held);
}

/* --- steps --- */

static void add_stream(struct http3_stream *q, int64_t id, bool own) {
	require(q);
	session.known[session.streams++] = (struct known){.stream = q, .id = id, .ended = own};
}

static void open_stream(bool uni) {
	int64_t *next = uni ? &session.next_uni : &session.next_bidi;
	if (session.streams == STREAMS || (uni && *next > 2 + 4 * (HTTP3_UNI_STREAMS - 1))) return;
	add_stream(http3_open(session.http3, *next), *next, false);
	*next += 4;
}

static void receive(struct known *k, struct slice data, bool ends, bool divides) {
	if (!k->stream || k->ended) return;
	k->ended = ends;
	k->received += data.length;
	session.pending = true;
	do {
		const struct slice piece = slice_first(data, divides && data.length ? 1 : data.length);
		/* of exact size, so that a sanitizer sees reads beyond the end */
		char *copy = malloc(piece.length ? piece.length : 1);
		require(copy);
		if (piece.length) memcpy(copy, piece.at, piece.length);
		data = slice_rest(data, piece.length);
		session.error = http3_receive(session.http3, k->stream, (struct slice){.at = copy, .length = piece.length},
									  ends && !data.length);
		free(copy);
	} while (data.length && !session.error);
}

static void received(void) {
	if (!session.error && session.pending) session.error = http3_received(session.http3);
	session.pending = false;
}

/* Sends pieces, of the first of which the transport takes a part. */
static void send_pieces(unsigned pieces, unsigned part) {
	struct http3_piece piece;
	for (unsigned i = 0; i < pieces && http3_next(session.http3, &piece); i++) {
		struct known *k = known_of(piece.id);
		const size_t n = part && piece.length ? piece.length / 4 * part : piece.length;
		require(k->stream == piece.stream);
		require(!k->took_end);
		require(!piece.stream->blocked);
		note_number((uint64_t)piece.id);
		note(piece.at, n);
		k->sent += n;
		k->took_end = piece.ends && n == piece.length;
		http3_sent(session.http3, &piece, n);
		part = 0;
		require(session.http3->unacknowledged < HTTP3_UNACKNOWLEDGED + 2 * (HTTP3_DATA + STREAMS_BLOCK));
	}
	finish_work();
}

static void acknowledge(struct known *k, bool all) {
	const uint64_t n = all ? k->sent - k->acknowledged : (k->sent - k->acknowledged) / 2;
	if (!k->stream) return;
	http3_acknowledged(session.http3, k->stream, n);
	k->acknowledged += n;
}

static void close_stream(struct known *k) {
	if (!k->stream || k->stream->kind == HTTP3_OWN) return;
	const enum http3_error error = http3_close(session.http3, k->stream);
	if (!session.error) session.error = error;
	k->stream = NULL;
}

static void change_stream(struct known *k, unsigned how) {
	if (!k->stream || k->stream->kind == HTTP3_OWN) return;
	switch (how) {
	case 0:
		session.error = http3_cancelled(session.http3, k->stream);
		k->ended = true;
		session.pending = true;
		break;
	case 1: close_stream(k); break;
	default: /* it says that it takes no more when it is given something */
		if (how == 3 || k->stream->unsent) http3_block(k->stream, how == 2);
	}
}

static void do_other(struct known *k, unsigned how) {
	if (how == 1 && k->stream && k->stream->kind != HTTP3_OWN) {
		k->took_end = true;
		http3_give_up(session.http3, k->stream);
	}
	if (how == 2) http3_drain(session.http3);
}

/* Does the next step of the input. Returns the bytes that it takes. */
static size_t step(const uint8_t *data, size_t length, bool divides) {
	const unsigned what = data[0] & 7, which = data[0] >> 3 & 7, how = data[0] >> 6;
	struct known *k = &session.known[which % session.streams];
	if (what == 4 || what == 7) received(); /* all else may be in one datagram */
	if (session.error) return length;
	switch (what) {
	case 0:
	case 1: {
		size_t n = length > 1 ? (size_t)data[1] * (how & 2 ? LONG_PIECE : 1) : 0;
		if (n > length - 2 || length < 2) n = length < 2 ? 0 : length - 2;
		receive(k, (struct slice){.at = (const char *)data + (length < 2 ? 1 : 2), .length = n}, how & 1, divides);
		return (length < 2 ? 1 : 2) + n;
	}
	case 2: open_stream(false); break;
	case 3: open_stream(true); break;
	case 4: send_pieces(how == 3 ? 64 : which + 1, how == 3 ? 0 : how); break;
	case 5: acknowledge(k, how == 3); break;
	case 6: change_stream(k, how); break;
	default: do_other(k, how);
	}
	return 1;
}

/* Ends it as the transport does when the client takes everything. */
static void finish(void) {
	received();
	if (session.error) return;
	http3_drain(session.http3);
	for (unsigned i = 0; i < session.streams; i++) change_stream(&session.known[i], 3);
	for (unsigned i = 0; i < session.streams; i++)
		if (session.known[i].stream && session.known[i].stream->stream && session.known[i].stream->stream->receiving)
			change_stream(&session.known[i], 0);
	received();
	for (int i = 0; i < 64; i++) {
		send_pieces(64, 0);
		for (unsigned j = 0; j < session.streams; j++) acknowledge(&session.known[j], true);
	}
	check();
	for (unsigned i = 0; i < session.streams; i++) close_stream(&session.known[i]);
	require(session.error || http3_ended(session.http3));
}

/* Returns a hash of what the session did. */
static uint64_t run(const uint8_t *data, size_t length, bool divides) {
	struct peer peer = {0};
	session = (struct session){.next_uni = 2, .hash = UINT64_C(0xcbf29ce484222325)};
	session.http3 = http3_new(&context, &transport, NULL, &peer, FORWARDING_NONE, 443);
	require(session.http3);
	add_stream(http3_begin(session.http3, 3), 3, true);
	while (length && !session.error) {
		const size_t n = step(data, length, divides);
		data += n;
		length -= n;
		if (session.error) break;
		finish_work();
		check();
		note_number(0);
	}
	if (!session.error) finish();
	note_number(session.error);
	http3_free(session.http3);
	return session.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	if (!loop) set_up();
	uint64_t whole = run(data, length, false), divided = run(data, length, true);
	if (whole != divided) { /* a file may have got its entity-tag in between */
		whole = run(data, length, false);
		divided = run(data, length, true);
	}
	require(whole == divided);
	response_batch_free_spares(&batches);
	require(io_wait(loop, 0) == 0);
	return 0;
}
